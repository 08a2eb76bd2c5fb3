//go:build linux

package localkube_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// The hub beside the cluster that tests share ends with the process that it was started for.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	blue := cluster.Shared(t)
	dir, owner := newDir(t), bystander(t)
	r := succeed(t, "up", "--dir", dir, "--profile", "hub", "--until-exit-of", strconv.Itoa(owner.Process.Pid))
	if !strings.Contains(r.stdout, "kube-apiserver started\n") || !strings.Contains(r.stdout, filepath.Join(dir, "kubeconfig")) {
		t.Errorf("up does not tell its steps and where its kubeconfig is: %s", r)
	}

	for name, dir := range map[string]string{"cluster": blue.Dir, "hub": dir} {
		for what, check := range map[string]func(*testing.T, string){
			"is private to this machine":         onlyLoopback,
			"says that it is well":               saysThatItIsWell,
			"has a private kubeconfig":           privateKubeconfig,
			"tells its version":                  tellsItsVersion,
			"gives out tokens and checks rights": tokensAndRights,
		} {
			t.Run(name+" "+what, func(t *testing.T) { check(t, dir) })
		}
	}
	t.Run("nothing runs in a hub that is alive", func(t *testing.T) { nothingRuns(t, dir) })
	t.Run("a cluster deletes and collects", func(t *testing.T) { deletesAndCollects(t, blue.Dir) })
	t.Run("they do not trust each other", func(t *testing.T) { mutualDistrust(t, blue.Dir, dir) })
	t.Run("workloads run in a cluster", func(t *testing.T) {
		client, namespace := clientOf(t, blue.Config()), blue.Namespace(t)
		createDeployment(t, client, namespace, deployment("cart", 3, nil))
		awaitReady(t, client, namespace, "cart")
	})
	t.Run("admission is that of clusters", func(t *testing.T) { clusterAdmission(t, blue.Dir) })

	t.Run("the hub ends with its owner", func(t *testing.T) {
		if err := owner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = owner.Wait()
		noProcesses(t, dir)
		s, code := statusOf(t, dir)
		if code != 1 || s.Running {
			t.Errorf("exit code is %d and status %+v, want it stopped", code, s)
		}
		for _, c := range s.Components {
			if c.State != "stopped" {
				t.Errorf("%s is %s, want it stopped in good order", c.Name, c.State)
			}
		}
	})
}

func saysThatItIsWell(t *testing.T, dir string) {
	s, code := statusOf(t, dir)
	if code != 0 || !s.Running || !s.Healthy || s.Kubeconfig != filepath.Join(dir, "kubeconfig") {
		t.Errorf("status is %+v, exit code %d", s, code)
	}
	want := []string{"localkube", "etcd", "kube-apiserver", "kube-controller-manager"}
	if s.Profile == "cluster" {
		want = append(want, "kube-scheduler", "kwok")
	}
	if len(s.Components) != len(want) {
		t.Errorf("components are %+v, want %v", s.Components, want)
	}
	table := succeed(t, "status", "--dir", dir).stdout
	for _, name := range want {
		c := s.component(t, name)
		if c.State != "running" || c.PID == 0 {
			t.Errorf("%s is %+v, want it running", name, c)
		}
		if _, err := os.Stat(c.Log); err != nil {
			t.Errorf("log of %s: %v", name, err)
		}
		for _, part := range []string{name, fmt.Sprint(c.PID), c.Log} {
			if !strings.Contains(table, part) {
				t.Errorf("the table does not show %s:\n%s", part, table)
			}
		}
	}
}

func privateKubeconfig(t *testing.T, dir string) {
	path := filepath.Join(dir, "kubeconfig")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %o, want 600", info.Mode().Perm())
	}
	raw, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range raw.Clusters {
		if c.InsecureSkipTLSVerify || len(c.CertificateAuthorityData) == 0 {
			t.Errorf("cluster %s is not verified", name)
		}
	}
	if r := localkube(t, "kubectl", "--kubeconfig", path, "get", "namespaces", "-o", "name"); r.code != 0 || !strings.Contains(r.stdout, "namespace/kube-system") {
		t.Errorf("kubectl: %s", r)
	}
}

func tellsItsVersion(t *testing.T, dir string) {
	version, err := clientOf(t, configOf(t, dir)).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	// Charts ask for it: Helm refuses one whose kubeVersion does not fit.
	if version.Major != "1" || !strings.HasPrefix(version.GitVersion, "v1."+version.Minor+".") {
		t.Errorf("version is %s (%s.%s), want a release of Kubernetes: `make localkube` builds it so", version.GitVersion, version.Major, version.Minor)
	}
}

// tokensAndRights proves service accounts, their tokens, and RBAC.
func tokensAndRights(t *testing.T, dir string) {
	admin := configOf(t, dir)
	client := clientOf(t, admin)
	namespace := cluster.Name(t)
	createNamespace(t, client, namespace, nil)
	awaitServiceAccount(t, client, namespace)
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	account := clientOf(t, config)
	who, err := account.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + namespace + ":default"; who.Status.UserInfo.Username != want {
		t.Errorf("the token is that of %s, want %s", who.Status.UserInfo.Username, want)
	}
	if _, err := account.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a service account without rights lists secrets: %v", err)
	}
}

// deletesAndCollects proves the controllers that every profile has.
func deletesAndCollects(t *testing.T, dir string) {
	client := clientOf(t, configOf(t, dir))
	namespace := cluster.Name(t)
	createNamespace(t, client, namespace, nil)

	owner := createConfigMap(t, client, namespace, configMap("owner"))
	owned := configMap("owned")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	createConfigMap(t, client, namespace, owned)
	createConfigMap(t, client, namespace, configMap("free"))
	if err := client.CoreV1().ConfigMaps(namespace).Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what is owned goes with its owner", func() error {
		return isGone(client.CoreV1().ConfigMaps(namespace).Get(t.Context(), owned.Name, metav1.GetOptions{}))
	})
	isKept(t, client, namespace, "free")

	if err := client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace goes", func() error {
		return isGone(client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}))
	})
}

func isGone[T any](_ T, err error) error {
	if err == nil {
		return errors.New("it is still there")
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func mutualDistrust(t *testing.T, one, other string) {
	ours, theirs := configOf(t, one), configOf(t, other)

	wrongCA := rest.CopyConfig(ours)
	wrongCA.CAData = theirs.CAData
	_, err := clientOf(t, wrongCA).Discovery().ServerVersion()
	if unknown := (x509.UnknownAuthorityError{}); !errors.As(err, &unknown) {
		t.Errorf("a client that trusts another CA: %v, want it to refuse the server", err)
	}

	stranger := rest.CopyConfig(ours)
	stranger.CertData, stranger.KeyData = theirs.CertData, theirs.KeyData
	if _, err := clientOf(t, stranger).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("the administrator of another cluster: %v, want Unauthorized", err)
	}

	nobody := rest.AnonymousClientConfig(ours)
	if _, err := clientOf(t, nobody).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a client without a certificate: %v, want Forbidden", err)
	}

	etcd := etcdOf(t, one)
	insecure := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: wait.Deadline()}
	if response, err := insecure.Get(etcd + "/version"); err == nil {
		t.Errorf("etcd answers a client without a certificate: %s", response.Status)
		_ = response.Body.Close()
	}
}

// etcdOf finds the address in the API server's arguments.
func etcdOf(t *testing.T, dir string) string {
	s, _ := statusOf(t, dir)
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.component(t, "kube-apiserver").PID))
	if err != nil {
		t.Fatal(err)
	}
	for arg := range strings.SplitSeq(string(data), "\x00") {
		if address, ok := strings.CutPrefix(arg, "--etcd-servers="); ok {
			return address
		}
	}
	t.Fatalf("no etcd in %q", data)
	return ""
}

// nothingRuns makes a Deployment and a quota and, once the controllers have been
// seen at work after that, finds that none cared.
func nothingRuns(t *testing.T, dir string) {
	client := clientOf(t, configOf(t, dir))
	const namespace = metav1.NamespaceDefault
	createDeployment(t, client, namespace, deployment("cart", 3, nil))
	limited := namespaceWithQuota(t, client)
	deletesAndCollects(t, dir)
	hubAdmission(t, client, limited)

	d, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "cart", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Status.ObservedGeneration != 0 || len(d.Status.Conditions) > 0 {
		t.Errorf("somebody observed the Deployment: %+v", d.Status)
	}
	sets, err := client.AppsV1().ReplicaSets("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) > 0 {
		t.Errorf("ReplicaSets: %d, %v, want none", len(sets.Items), err)
	}
	pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("pods: %d, %v, want none", len(pods.Items), err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) > 0 {
		t.Errorf("nodes: %d, %v, want none", len(nodes.Items), err)
	}
}

// clusterAdmission proves the admission plugins that a hub lacks, and that a
// node is held to what is its own.
func clusterAdmission(t *testing.T, dir string) {
	admin := configOf(t, dir)
	client := clientOf(t, admin)
	namespace := namespaceWithQuota(t, client)
	eventually(t, "the quota counts", func() error {
		if _, err := dryRunPod(t, client, namespace); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "quota") {
			return fmt.Errorf("a pod past the quota: %v, want it refused", err)
		}
		return nil
	})
	awaitServiceAccount(t, client, metav1.NamespaceDefault)
	pod, err := dryRunPod(t, client, metav1.NamespaceDefault)
	if err != nil || pod.Spec.ServiceAccountName != "default" {
		t.Errorf("pod has service account %q, %v, want default", pod.Spec.ServiceAccountName, err)
	}
	if claim := dryRunClaim(t, client); len(claim.Finalizers) != 1 {
		t.Errorf("claim has finalizers %v, want it protected", claim.Finalizers)
	}

	node := rest.CopyConfig(admin)
	node.Impersonate = rest.ImpersonationConfig{UserName: "system:node:node-9", Groups: []string{"system:nodes", "system:authenticated"}}
	_, err = clientOf(t, node).CoreV1().Nodes().Patch(t.Context(), "node-0", types.MergePatchType, []byte(`{"metadata":{"labels":{"theirs":"mine"}}}`), metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "node-9") {
		t.Errorf("a node changes another: %v, want it refused", err)
	}
}

// hubAdmission finds everything as it was written.
func hubAdmission(t *testing.T, client kubernetes.Interface, namespace string) {
	pod, err := dryRunPod(t, client, namespace)
	if err != nil {
		t.Fatalf("a pod in a namespace with a quota: %v, want it taken", err)
	}
	if pod.Spec.ServiceAccountName != "" {
		t.Errorf("pod has service account %q, want none", pod.Spec.ServiceAccountName)
	}
	if claim := dryRunClaim(t, client); len(claim.Finalizers) != 0 {
		t.Errorf("claim has finalizers %v, want none", claim.Finalizers)
	}
}

// namespaceWithQuota has one that allows no pod.
func namespaceWithQuota(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	namespace := cluster.Name(t)
	createNamespace(t, client, namespace, nil)
	if _, err := client.CoreV1().ResourceQuotas(namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return namespace
}

func dryRunPod(t *testing.T, client kubernetes.Interface, namespace string) (*corev1.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "template"}, Spec: podSpec()}
	return client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func dryRunClaim(t *testing.T, client kubernetes.Interface) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim, err := client.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "template"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	return claim
}
