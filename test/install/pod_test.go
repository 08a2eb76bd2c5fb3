package install_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func isRoot() bool { return os.Geteuid() == 0 }

// container is the one container of a pod, on this machine.
type container struct {
	corev1.Container
	pod   *corev1.Pod
	image *image
	// root is the directory that is its file system.
	root string
	// address stands for that of the pod: a container that shares the network of this machine must not bind to all addresses.
	address string
	// server is the API server.
	server *url.URL
}

// serviceAccountDir is where every pod has its token.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// prepare writes the files that the container finds.
func (c *container) prepare(ctx context.Context, reader client.Client) error {
	if err := c.image.extract(c.root); err != nil {
		return err
	}
	// Only root can put them back for whoever removes the directory.
	if isRoot() && ptr.Deref(c.SecurityContext.ReadOnlyRootFilesystem, false) {
		if err := makeReadOnly(c.root); err != nil {
			return err
		}
	}
	for _, mount := range c.VolumeMounts {
		at := slices.IndexFunc(c.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if at < 0 {
			return fmt.Errorf("pod %s has no volume %s", c.pod.Name, mount.Name)
		}
		if err := c.mount(ctx, reader, c.pod.Spec.Volumes[at], filepath.Join(c.root, mount.MountPath)); err != nil {
			return fmt.Errorf("mount volume %s of pod %s: %w", mount.Name, c.pod.Name, err)
		}
	}
	return nil
}

func (c *container) mount(ctx context.Context, reader client.Client, volume corev1.Volume, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var projections []corev1.VolumeProjection
	switch {
	case volume.EmptyDir != nil:
		return os.Chmod(dir, 0o777)
	case volume.Secret != nil:
		name := corev1.LocalObjectReference{Name: volume.Secret.SecretName}
		projections = []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: name, Items: volume.Secret.Items}}}
	case volume.ConfigMap != nil:
		from := corev1.ConfigMapProjection{LocalObjectReference: volume.ConfigMap.LocalObjectReference, Items: volume.ConfigMap.Items}
		projections = []corev1.VolumeProjection{{ConfigMap: &from}}
	case volume.Projected != nil:
		projections = volume.Projected.Sources
	default:
		return fmt.Errorf("its kind is unknown to this test: %+v", volume.VolumeSource)
	}
	for _, projection := range projections {
		files, err := c.project(ctx, reader, projection)
		if err != nil {
			return err
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// project gives the files of a source.
func (c *container) project(ctx context.Context, reader client.Client, from corev1.VolumeProjection) (map[string][]byte, error) {
	switch {
	case from.Secret != nil:
		var secret corev1.Secret
		if err := reader.Get(ctx, client.ObjectKey{Namespace: c.pod.Namespace, Name: from.Secret.Name}, &secret); err != nil {
			return nil, err
		}
		return items(secret.Data, from.Secret.Items)
	case from.ConfigMap != nil:
		var config corev1.ConfigMap
		if err := reader.Get(ctx, client.ObjectKey{Namespace: c.pod.Namespace, Name: from.ConfigMap.Name}, &config); err != nil {
			return nil, err
		}
		all := map[string][]byte{}
		for name, text := range config.Data {
			all[name] = []byte(text)
		}
		return items(all, from.ConfigMap.Items)
	case from.ServiceAccountToken != nil:
		token, err := c.token(ctx, reader, from.ServiceAccountToken)
		return map[string][]byte{from.ServiceAccountToken.Path: []byte(token)}, err
	case from.DownwardAPI != nil:
		files := map[string][]byte{}
		for _, item := range from.DownwardAPI.Items {
			if item.FieldRef == nil || item.FieldRef.FieldPath != "metadata.namespace" {
				return nil, fmt.Errorf("field %+v is unknown to this test", item)
			}
			files[item.Path] = []byte(c.pod.Namespace)
		}
		return files, nil
	}
	return nil, fmt.Errorf("source %+v is unknown to this test", from)
}

func items(all map[string][]byte, chosen []corev1.KeyToPath) (map[string][]byte, error) {
	if len(chosen) == 0 {
		return all, nil
	}
	files := map[string][]byte{}
	for _, item := range chosen {
		content, found := all[item.Key]
		if !found {
			return nil, fmt.Errorf("there is no key %s", item.Key)
		}
		files[item.Path] = content
	}
	return files, nil
}

// token is one that is bound to the pod: it ends with it.
func (c *container) token(ctx context.Context, admin client.Client, asked *corev1.ServiceAccountTokenProjection) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: asked.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: c.pod.Name, UID: c.pod.UID},
	}}
	if asked.Audience != "" {
		request.Spec.Audiences = []string{asked.Audience}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.pod.Namespace, Name: c.pod.Spec.ServiceAccountName}}
	if err := admin.SubResource("token").Create(ctx, account, request); err != nil {
		return "", err
	}
	return request.Status.Token, nil
}

// command runs the container: as root of this machine with the user and the file system of the pod, otherwise as whoever
// runs the test, with the same files.
func (c *container) command() (*exec.Cmd, error) {
	image := c.image.config.Config
	if len(c.Command) > 0 || len(c.Env) > 0 || len(c.EnvFrom) > 0 || len(image.Entrypoint) != 1 {
		return nil, fmt.Errorf("container %s has a command or an environment that is unknown to this test", c.Name)
	}
	user := c.pod.Spec.SecurityContext
	if want := fmt.Sprintf("%d:%d", *user.RunAsUser, *user.RunAsGroup); image.User != want {
		return nil, fmt.Errorf("the image is made for user %s, and the pod runs as %s", image.User, want)
	}
	args := slices.Clone(c.Args)
	for i, arg := range args {
		if flag, port, bindsToAll := strings.Cut(arg, "=:"); bindsToAll {
			args[i] = flag + "=" + net.JoinHostPort(c.address, port)
		}
	}
	cmd := exec.Command(image.Entrypoint[0], args...)
	cmd.Env = append(slices.Clone(image.Env), "HOME=/home/nonroot", "HOSTNAME="+c.pod.Name,
		"KUBERNETES_SERVICE_HOST="+c.server.Hostname(), "KUBERNETES_SERVICE_PORT="+c.server.Port())
	if isRoot() {
		cmd.Dir = image.WorkingDir
		credential := &syscall.Credential{Uid: uint32(*user.RunAsUser), Gid: uint32(*user.RunAsGroup)}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: credential}
		return cmd, nil
	}
	return cmd, c.withoutChroot(cmd)
}

// withoutChroot has a command find its files below the directory, for those who may not change the root directory.
func (c *container) withoutChroot(cmd *exec.Cmd) error {
	for i, arg := range cmd.Args {
		flag, value, _ := strings.Cut(arg, "=")
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(value, m.MountPath) }) {
			cmd.Args[i] = flag + "=" + filepath.Join(c.root, value)
		}
	}
	config := clientcmdapi.NewConfig()
	dir := filepath.Join(c.root, serviceAccountDir)
	config.Clusters["pod"] = &clientcmdapi.Cluster{Server: c.server.String(), CertificateAuthority: filepath.Join(dir, "ca.crt")}
	config.AuthInfos["pod"] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(dir, "token")}
	config.Contexts["pod"] = &clientcmdapi.Context{Cluster: "pod", AuthInfo: "pod"}
	config.CurrentContext = "pod"
	file := filepath.Join(c.root, "kubeconfig")
	cmd.Path, cmd.Args = filepath.Join(c.root, cmd.Path), append(cmd.Args, "--kubeconfig="+file)
	cmd.Env = append(cmd.Env, "HOME="+c.root)
	return clientcmd.WriteToFile(*config, file)
}

// port is the number of a port of the container.
func (c *container) port(of intstr.IntOrString) int32 {
	for _, port := range c.Ports {
		if port.Name == of.StrVal {
			return port.ContainerPort
		}
	}
	return of.IntVal
}

// probe asks whether the container is ready, as kubelets do.
func (c *container) probe(ctx context.Context) error {
	asked := c.ReadinessProbe.HTTPGet
	address := net.JoinHostPort(c.address, strconv.Itoa(int(c.port(asked.Port))))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+cmp.Or(asked.Path, "/"), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New("the container of pod " + c.pod.Name + " is not ready: " + response.Status)
	}
	return nil
}
