package operator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// meshInstallation is the chart with a mesh that is served, in a cluster whose pods run nothing: the test runs the operator of
// each pod, with the pod's arguments and identity.
type meshInstallation struct {
	client.Client
	*cluster.Cluster
	namespace string
	release   release
}

// TestMeshFollowsTheLeader: the pod that leads is marked as the one that serves, and only that, so that the Service of the
// chart leads to it, and to the next one when it has died.
func TestMeshFollowsTheLeader(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	i := &meshInstallation{Client: administrator(t, c.Config()), Cluster: c, namespace: c.Namespace(t)}
	electsMeshLeader(t, i.Client)
	installCRDs(t, c.Config(), "meshservice")
	var err error
	values := meshValues(map[string]any{"serving": serving(nil)}, "meshservice")
	if i.release, err = renderChart("fairlead", i.namespace, values); err != nil {
		t.Fatal(err)
	}
	if err := i.release.Apply(t.Context(), i.Client); err != nil {
		t.Fatal(err)
	}
	create(t, i.Client, &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	pods := i.pods(t)
	i.leadsTo(t)

	files := servingCertificate(t, "127.0.0.1")
	first := i.start(t, pods[0].Name, files)
	first.leading(t)
	i.leadsTo(t, pods[0].Name)
	second := i.start(t, pods[1].Name, files)
	second.ready(t)
	i.leadsTo(t, pods[0].Name)

	first.Kill()
	second.leading(t)
	i.leadsTo(t, pods[1].Name)
}

// pods waits for the two of the chart's Deployment.
func (i *meshInstallation) pods(t testing.TB) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	wait.Until(t, func(ctx context.Context) error {
		list = corev1.PodList{}
		if err := i.List(ctx, &list, client.InNamespace(i.namespace), client.MatchingLabels{"app.kubernetes.io/name": "fairlead"}); err != nil {
			return err
		}
		ready := slices.DeleteFunc(slices.Clone(list.Items), func(p corev1.Pod) bool { return p.Status.PodIP == "" })
		if len(ready) != 2 {
			return fmt.Errorf("%d of %d pods have an address", len(ready), len(list.Items))
		}
		return nil
	})
	return list.Items
}

// start runs the operator of a pod, bound to this machine, with the certificate that would be mounted.
func (i *meshInstallation) start(t testing.TB, pod, files string) *process {
	t.Helper()
	token, err := i.release.Token(t.Context(), i.Client, "fairlead")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(i.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	i.release.find(t, "Deployment", "fairlead", &deployment)
	var args []string
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		arg = strings.ReplaceAll(arg, "$(POD_NAME)", pod)
		args = append(args, strings.ReplaceAll(arg, "/etc/fairlead/mesh", files))
	}
	return startOperatorWith(t, harness.Environment(t.TempDir()), append(args, "--kubeconfig", kubeconfig, lease(), "--chart-cache-dir="+t.TempDir(),
		"--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0", "--mesh-bind-address=127.0.0.1:0"))
}

// leadsTo waits until these pods, and no others, are marked and behind the Service.
func (i *meshInstallation) leadsTo(t testing.TB, want ...string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var marked corev1.PodList
		if err := i.List(ctx, &marked, client.InNamespace(i.namespace), client.MatchingLabels{meshservice.LabelServing: "true"}); err != nil {
			return err
		}
		var names []string
		for _, pod := range marked.Items {
			names = append(names, pod.Name)
		}
		var slicesOf discoveryv1.EndpointSliceList
		if err := i.List(ctx, &slicesOf, client.InNamespace(i.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: "fairlead-mesh"}); err != nil {
			return err
		}
		var behind []string
		for _, s := range slicesOf.Items {
			for _, e := range s.Endpoints {
				behind = append(behind, e.TargetRef.Name)
			}
		}
		if len(slicesOf.Items) == 0 || !slices.Equal(names, want) || !slices.Equal(behind, want) {
			return fmt.Errorf("marked are %v, behind the Service (%d slices) are %v, want %v", names, len(slicesOf.Items), behind, want)
		}
		return nil
	})
}

// servingCertificate is a directory with what a Secret of the chart holds.
func servingCertificate(t testing.TB, host string) string {
	t.Helper()
	authority, err := callers.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(time.Now().Add(time.Hour), host)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
