//go:build linux

package localkube_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	helm "helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestCharts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "charts")
	first := succeed(t, "charts", "--dir", dir)
	versions := []string{"v1.24.0", "v1.26.0", "v1.31.0"}
	// A release that the module proxy has withdrawn is told, and left out.
	if !strings.Contains(first.stdout, "charts of Istio v1.31.1 are left out") {
		versions = append(versions, "v1.31.1")
	}
	for _, version := range versions {
		for _, name := range []string{"base", "istiod", "default", "gateway"} {
			path := filepath.Join(dir, version, name)
			if _, err := os.Stat(filepath.Join(path, "values.yaml")); err != nil {
				t.Error(err)
			}
			loadChart(t, path)
		}
		if !strings.Contains(first.stdout, filepath.Join(dir, version)) {
			t.Errorf("charts does not tell of %s: %s", version, first)
		}
	}

	// What is there is left as it is, and may be changed and deleted.
	mark := filepath.Join(dir, "v1.24.0", "istiod", "values.yaml")
	if err := os.WriteFile(mark, []byte("changed: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "v1.31.0")); err != nil {
		t.Fatal(err)
	}
	succeed(t, "charts", "--dir", dir)
	if data, err := os.ReadFile(mark); err != nil || string(data) != "changed: true\n" {
		t.Errorf("a chart that was there was written again: %q, %v", data, err)
	}
	loadChart(t, filepath.Join(dir, "v1.31.0", "istiod"))
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(versions) {
		t.Errorf("left are %v, %v, want %v", entries, err, versions)
	}
}

// Real istiods behind the real charts' Services, several side by side.
func TestIstiod(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	charts := cluster.Charts(t)
	client := clientOf(t, c.Config())
	for _, namespace := range []string{"istio-system", "mesh"} {
		createNamespace(t, client, namespace, nil)
	}
	istiod := func(revision string, args ...string) result {
		return localkube(t, append([]string{"istiod", "--dir", c.Dir, "--revision", revision}, args...)...)
	}

	t.Run("waits for what is not installed yet", func(t *testing.T) {
		const waiting = "waiting: for ConfigMap istio-system/istio-sidecar-injector-a of the revision's chart"
		if r := istiod("a"); r.code != 0 || r.stdout != "istiod of revision a: "+waiting+"\n" {
			t.Errorf("istiod: %s", r)
		}
		if r := istiod("a", "--wait", "500ms"); r.code != 1 || !strings.Contains(r.stderr, "injects nothing after 500ms: it waits for ConfigMap") {
			t.Errorf("istiod --wait: %s", r)
		}
		if r := localkube(t, "status", "--dir", c.Dir); r.code != 0 || !strings.Contains(r.stdout, waiting) {
			t.Errorf("status: %s", r)
		}
		if r := istiod("a", "--namespace", "mesh"); r.code != 1 || !strings.Contains(r.stderr, "revision a runs in namespace istio-system already") {
			t.Errorf("istiod in another namespace: %s", r)
		}
	})

	meshes := map[string]mesh{
		"a":       {namespace: "istio-system", version: "v1.24.0", labels: map[string]string{"istio.io/rev": "a"}},
		"b":       {namespace: "istio-system", version: "v1.26.0", labels: map[string]string{"istio.io/rev": "b"}},
		"c":       {namespace: "istio-system", version: "v1.31.0", labels: map[string]string{"istio.io/rev": "c"}},
		"default": {namespace: "mesh", version: "v1.24.0", labels: map[string]string{"istio-injection": "enabled"}},
	}
	install(t, c, filepath.Join(charts, "v1.24.0", "base"), "istio-base", "istio-system", nil)
	for revision, m := range meshes {
		values := map[string]any{"revision": revision, "global": map[string]any{"istioNamespace": m.namespace}}
		if revision == "default" {
			delete(values, "revision")
		}
		install(t, c, filepath.Join(charts, m.version, "istiod"), "istiod-"+revision, m.namespace, values)
	}
	for revision, m := range meshes {
		if r := istiod(revision, "--namespace", m.namespace, "--wait", wait.Deadline().String()); r.code != 0 || !strings.HasSuffix(r.stdout, ": running\n") {
			t.Fatalf("istiod --wait: %s", r)
		}
	}

	t.Run("namespaces get the sidecar of their revision", func(t *testing.T) {
		for revision, m := range meshes {
			createNamespace(t, client, "of-"+revision, m.labels)
			getsSidecar(t, client, "of-"+revision, "cart", revision)
		}
		createNamespace(t, client, "plain", nil)
		createDeployment(t, client, "plain", deployment("cart", 1, nil))
		awaitReady(t, client, "plain", "cart")
		pod, err := onlyPod(t, client, "plain", "cart")
		if err != nil || len(pod.Spec.Containers) != 1 {
			t.Errorf("a pod outside any mesh: %v, %v, want no sidecar", pod, err)
		}
	})
	t.Run("they stay on this machine", func(t *testing.T) { onlyLoopback(t, c.Dir) })

	t.Run("a killed one is named, missed and healed", func(t *testing.T) {
		before, _ := statusOf(t, c.Dir)
		kill(t, before.component(t, "istiod-a").PID, syscall.SIGKILL)
		saysWhoDied(t, c.Dir, before, []string{"istiod-a"})
		// At first the API server may try a connection that it has kept, of which it has not heard yet that it is cut.
		eventually(t, "a pod without its injector is refused by the proxy", func() error {
			_, err := client.CoreV1().Pods("of-a").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lost"}, Spec: podSpec()}, metav1.CreateOptions{})
			if err == nil {
				return wait.Permanent(errors.New("it is accepted"))
			}
			if !strings.Contains(err.Error(), "does not answer") {
				return err
			}
			return nil
		})
		getsSidecar(t, client, "of-b", "unmoved", "b")

		if r := up(t, c.Dir); !strings.Contains(r.stdout, "istiod-a started again (it was killed by signal 9 (killed))") {
			t.Errorf("up: %s", r)
		}
		healed(t, c.Dir, before, []string{"istiod-a"})
		if r := istiod("a", "--wait", wait.Deadline().String()); r.code != 0 {
			t.Fatalf("istiod --wait: %s", r)
		}
		getsSidecar(t, client, "of-a", "healed", "a")
	})

	t.Run("down stops them and up brings them back", func(t *testing.T) {
		succeed(t, "down", "--dir", c.Dir)
		noProcesses(t, c.Dir)
		up(t, c.Dir)
		client := clientOf(t, configOf(t, c.Dir)) // of the API server where it is now
		if r := istiod("b", "--wait", wait.Deadline().String()); r.code != 0 {
			t.Fatalf("istiod --wait: %s", r)
		}
		getsSidecar(t, client, "of-b", "again", "b")
	})
}

// mesh is one installed control plane and what namespaces it serves.
type mesh struct {
	namespace, version string
	labels             map[string]string
}

// getsSidecar checks pods that a Deployment makes.
func getsSidecar(t *testing.T, client kubernetes.Interface, namespace, name, revision string) {
	t.Helper()
	// The API server hears of a webhook a moment after it is there, and of what istiod writes into it.
	eventually(t, "pods of namespace "+namespace+" are injected", func() error {
		pod, err := dryRunPod(t, client, namespace)
		if err != nil {
			return err
		}
		if !hasProxy(pod) {
			return errors.New("a pod has no container istio-proxy")
		}
		return nil
	})
	createDeployment(t, client, namespace, deployment(name, 1, nil))
	awaitReady(t, client, namespace, name)
	pod, err := onlyPod(t, client, namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	if got := pod.Annotations["istio.io/rev"]; got != revision {
		t.Errorf("annotation istio.io/rev of %s/%s is %q, want %q", namespace, pod.Name, got, revision)
	}
	if !hasProxy(pod) {
		t.Errorf("pod %s/%s has no container istio-proxy", namespace, pod.Name)
	}
	if pod.Status.Phase != corev1.PodRunning || len(pod.Status.ContainerStatuses) != 2 {
		t.Errorf("pod %s/%s is %+v, want both containers to run", namespace, pod.Name, pod.Status)
	}
	for _, s := range pod.Status.ContainerStatuses {
		if !s.Ready || s.State.Running == nil {
			t.Errorf("container %s of %s/%s is %+v", s.Name, namespace, pod.Name, s)
		}
	}
}

func hasProxy(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "istio-proxy" })
}

func loadChart(t *testing.T, dir string) helm.Charter {
	t.Helper()
	loaded, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatalf("load chart %s: %v", dir, err)
	}
	return loaded
}

// install does what `helm install` does.
func install(t *testing.T, c *cluster.Cluster, dir, name, namespace string, values map[string]any) {
	t.Helper()
	loaded := loadChart(t, dir)
	options := common.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(loaded, values, options, common.DefaultCapabilities)
	if err != nil {
		t.Fatalf("values of chart %s: %v", dir, err)
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		t.Fatalf("render chart %s: %v", dir, err)
	}
	release := chart.Release{Namespace: namespace}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(file) != ".yaml" {
			continue
		}
		objects, err := chart.Decode(files[file])
		if err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
		release.Objects = append(release.Objects, objects...)
	}
	writer, err := ctrlclient.New(c.Config(), ctrlclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := release.Apply(t.Context(), writer); err != nil {
		t.Fatalf("install chart %s: %v", dir, err)
	}
}
