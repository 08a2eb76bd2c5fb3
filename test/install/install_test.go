// Package install_test installs Fairlead as docs/install.md says, by the commands of the page: a release is built and pushed, and
// Helm installs, upgrades, rolls back and uninstalls its chart in a real cluster, while workloads migrate. The operator is the
// program in the image that the chart names, and runs as its pods do.
package install_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/injector"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }

// operatorNamespace is where the page installs the chart.
const operatorNamespace = "fairlead-system"

// Versions of releases, and of Istio, with the revisions that these become.
const (
	release1, release2       = "0.1.0", "0.2.0"
	istio24, istio26         = "1.24.0", "1.26.0"
	istio27                  = "1.27.0"
	rev24, rev26, rev27      = "default-v1-24-0", "default-v1-26-0", "default-v1-27-0"
	registrySecret, caConfig = "registry-credentials", "registry-ca"
)

// world is a cluster whose administrator installs Fairlead.
type world struct {
	*cluster.Cluster
	client.WithWatch
	*user
	kubelet *kubelet
}

// TestInstallation has one migration go on through an upgrade of the operator, and another through a rollback.
func TestInstallation(t *testing.T) {
	if !faults.Full() {
		t.Skip("only FAIRLEAD_TESTS=full builds releases, which takes minutes")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the image is for Linux")
	}
	if err := cluster.LookAt("go.mod", "api", "charts", "cmd", "docs/install.md", "hack/release", "internal"); err != nil {
		t.Fatal(err)
	}
	registry := startRegistry(t)
	u := newUser(t, registry)
	u.release(t, release1)
	u.release(t, release2)
	u.pushIstio(t, istio24, istio26, istio27)

	w := newWorld(t, u)
	before := w.objects(t)
	w.installs(t)
	w.fits(t, release1)
	w.checks(t)
	w.deploysShop(t)

	w.starts(t, istio26, rev26, "cart")
	printed := w.run(t, w.command(t, "helm upgrade", release1)+w.patience())
	w.printsNotes(t, printed, release2)
	w.replaced(t, release1, release2)
	w.ends(t, rev24, rev26, "cart", 2)

	w.starts(t, istio27, rev27, "checkout")
	w.run(t, w.command(t, "helm rollback", release1)+w.patience())
	w.replaced(t, release2, release1)
	w.ends(t, rev26, rev27, "checkout", 3)

	w.uninstalls(t, before)
	w.installsWithoutHelm(t, release2)
}

func newWorld(t testing.TB, u *user) *world {
	t.Helper()
	c := cluster.Start(t, cluster.Options{KeepNamespaces: true})
	admin, err := harness.NewAdminClient(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := injector.Install(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	w := &world{Cluster: c, WithWatch: admin, user: u}
	u.kubeconfig = c.Kubeconfig()
	w.holdsOperatorPods(t)
	w.kubelet = startKubelet(t, c, admin, u.registry, operatorNamespace)
	return w
}

//go:embed testdata/operator-pods.yaml
var operatorPods string

// holdsOperatorPods leaves it to the kubelet of this test when pods of the chart are ready, and gone.
func (w *world) holdsOperatorPods(t testing.TB) {
	t.Helper()
	policies, err := chart.Decode(operatorPods)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range policies {
		if err := w.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, func(ctx context.Context) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "probe", Labels: map[string]string{"app.kubernetes.io/name": "fairlead"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		}
		if err := w.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if pod.Annotations[cluster.TerminateAfter] != cluster.Held {
			return errors.New("the policy for the pods of the operator is not in force yet")
		}
		return nil
	})
}

// patience is how long Helm waits on this machine.
func (w *world) patience() string { return " --timeout " + wait.Deadline().String() }

// installs installs the chart, with a registry of one's own for Istio's charts. The operator reaches it with what is mounted.
func (w *world) installs(t testing.TB) {
	t.Helper()
	w.run(t, "kubectl create namespace "+operatorNamespace)
	w.run(t, fmt.Sprintf("kubectl -n %s create secret generic %s --type kubernetes.io/dockerconfigjson --from-file .dockerconfigjson=%s",
		operatorNamespace, registrySecret, filepath.Join(w.registry.configDir, "config.json")))
	w.run(t, fmt.Sprintf("kubectl -n %s create configmap %s --from-file %s", operatorNamespace, caConfig, w.registry.caFile))
	values := fmt.Sprintf(" --set istioCharts.repository=oci://%s/istio,istioCharts.credentialsSecret=%s,istioCharts.caConfigMap=%s",
		w.registry.host, registrySecret, caConfig)
	printed := w.run(t, w.command(t, "helm install", release1)+values+w.patience())
	w.printsNotes(t, printed, release1)
	w.run(t, "kubectl -n "+operatorNamespace+" rollout status deployment/fairlead")
	if images := w.kubelet.running(); len(images) != 2 || images[0] != images[1] {
		t.Errorf("these containers run: %v", images)
	}
}

// printsNotes compares what Helm printed with the notes of the chart.
func (w *world) printsNotes(t testing.TB, printed, version string) {
	t.Helper()
	for _, line := range []string{
		"Fairlead " + version + " is installed in namespace " + operatorNamespace, "and runs all passages.",
		"kubectl -n fairlead-system rollout status deployment/fairlead", "fairlead version", "fairlead uninstall",
	} {
		if !strings.Contains(printed, line) {
			t.Errorf("the notes do not say %q:\n%s", line, printed)
		}
	}
	_, notes, _ := strings.Cut(printed, "NOTES:")
	t.Logf("%s", strings.TrimSpace(notes))
}

// fits waits until the command line, the operator and the CRDs are of one version.
func (w *world) fits(t testing.TB, version string) {
	t.Helper()
	w.user.version = version
	crds := 0
	for _, passage := range operator.Passages() {
		crds += len(passage.CRDs)
	}
	operators := fmt.Sprintf("\noperator v%s (leads adoption, meshservice, revision, rollout as ", version)
	kinds := fmt.Sprintf("\nCRDs %d as this fairlead has them\n", crds)
	wait.Until(t, func(context.Context) error {
		r := w.try(t, "fairlead version")
		if !strings.HasPrefix(r.Stdout, "fairlead v"+version+" ") || !strings.Contains(r.Stdout, operators) || !strings.HasSuffix(r.Stdout, kinds) || r.Code != 0 {
			return fmt.Errorf("fairlead version: exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
		}
		t.Logf("$ fairlead version\n%s", r.Stdout)
		return nil
	})
}

// replaced checks that operators of one version have taken over from those of another, in the middle of a migration.
func (w *world) replaced(t testing.TB, from, to string) {
	t.Helper()
	w.fits(t, to)
	w.user.version = from
	wait.Until(t, func(context.Context) error {
		if r := w.try(t, "fairlead version"); r.Code != 1 || !strings.Contains(r.Stdout, fmt.Sprintf("fairlead v%s and the operator v%s, ", from, to)) {
			return fmt.Errorf("fairlead %s does not say that it does not fit: exit code %d\n%s%s", from, r.Code, r.Stdout, r.Stderr)
		}
		return nil
	})
	w.user.version = to
	// Helm does not wait for pods that end.
	wait.Until(t, func(context.Context) error {
		if images := w.kubelet.running(); len(images) != 2 || images[0] != images[1] {
			return fmt.Errorf("these containers run: %v", images)
		}
		return nil
	})
	w.converts(t)
}
