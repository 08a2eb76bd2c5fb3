package moving_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// meshWithoutStatus is the CRD of Meshes as Kuma installs it.
func meshWithoutStatus(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		if crd.Spec.Names.Kind == kumav1alpha1.MeshKind {
			crd.Spec.Versions[i].Subresources = nil
		}
	}
}

// TestMoveFromKuma: a mesh in which a Service with two pods has a MeshService, and a headless one has one for its pod.
func TestMoveFromKuma(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "cluster", "meshservice")
	w.installCRDs(t, "meshservice", "helm", meshWithoutStatus)
	set := read(t, "kuma.yaml")
	service, rest, _ := strings.Cut(set, "---\napiVersion: kuma.io/v1alpha1\nkind: MeshService")
	created := w.applyText(t, []byte(service), "kuma-cp")
	w.serving(t, "shop/cart")
	cart := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(cart), cart); err != nil {
		t.Fatal(err)
	}
	rest = "apiVersion: kuma.io/v1alpha1\nkind: MeshService" + strings.ReplaceAll(rest, "CLUSTERIP", cart.Spec.ClusterIP)
	w.applyText(t, []byte(rest), "kuma-cp", created...)
	for _, pod := range w.pods(t, "shop") {
		text := strings.NewReplacer("POD", pod.Name, "UID", string(pod.UID), "ADDRESS", pod.Status.PodIP).Replace(read(t, "kuma-dataplane.yaml"))
		w.applyText(t, []byte(text), "kuma-cp")
	}
	headless := w.applyText(t, []byte(read(t, "kuma-headless.yaml")), "kuma-cp")
	w.servingPods(t, "data", 1)
	for _, pod := range w.pods(t, "data") {
		text := strings.NewReplacer("POD", pod.Name, "UID", string(pod.UID), "ADDRESS", pod.Status.PodIP).Replace(read(t, "kuma-headless-pod.yaml"))
		w.applyText(t, []byte(text), "kuma-cp", headless...)
	}

	w.serving(t, "kuma-system/kuma-control-plane")
	m := move{world: w, passage: "meshservice", system: "Kuma control plane", other: w.deployed("kuma-system/kuma-control-plane"), flags: []string{"--mesh-zone=default", "--mesh-namespace=kuma-system"}, webhooks: "kuma-webhook.yaml", guarded: &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	serving := w.serveMesh(t)
	m.holdsBeside(t)
	saysOf(t, serving, "is not served", "holds because of a Kuma control plane")
	if strings.Contains(serving.Log.Since(0), "msg=ready") {
		t.Error("proxies are served beside Kuma")
	}
	before, uids := m.running(t, m.other.namespace), m.meshUIDs(t)
	m.plans(t, "--take-over meshservice", "mesh", "default", "--mode", "Everywhere")
	m.takesOver(t)
	m.generated(t, 80)
	unchanged(t, before, m.running(t, m.other.namespace))
	m.keepsHeadless(t)
	unchanged(t, uids, m.meshUIDs(t))
	m.checkSays(t, "ok")
	saysOf(t, serving, "msg=ready")

	// The next change of the Service, and of its pods.
	harness.Change(t, w, cart, func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "grpc", Port: 81, TargetPort: intstr.FromInt32(8080), AppProtocol: ptr.To("grpc")})
	})
	m.generated(t, 80, 81)
	for _, pod := range w.pods(t, "shop") {
		harness.WaitFor(t, w, &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod.Name}}, func(d *kumav1alpha1.Dataplane) error {
			if len(d.Spec.Networking.Inbound) != 2 {
				return fmt.Errorf("inbounds %+v", d.Spec.Networking.Inbound)
			}
			return nil
		})
	}
	unchanged(t, uids, m.meshUIDs(t))

	// Back: what Kuma generates from has not changed, and nothing waits for Fairlead.
	before = m.running(t, m.other.namespace)
	m.uninstalls(t)
	unchanged(t, before, m.running(t, m.other.namespace))
	unchanged(t, uids, m.meshUIDs(t))
	for name, finalizers := range m.meshFinalizers(t) {
		t.Errorf("%s has the finalizers %v", name, finalizers)
	}
}

// serveMesh starts a process that serves proxies, as the chart does where that is enabled.
func (w world) serveMesh(t *testing.T) *harness.Operator {
	t.Helper()
	serving, err := harness.StartFairlead(harness.Environment(t.TempDir()), "serve-mesh", "--kubeconfig", w.Kubeconfig(), "--log-format=text",
		"--mesh-bind-address=127.0.0.1:0", "--mesh-insecure", "--mesh-zone=default", "--mesh-namespace=kuma-system",
		"--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=0")
	if err != nil {
		t.Fatal(err)
	}
	serving.KeepLogOnFailure(t)
	t.Cleanup(serving.Kill)
	return serving
}

// saysOf waits until the log of a process has all parts.
func saysOf(t *testing.T, p *harness.Operator, parts ...string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		for _, part := range parts {
			if !strings.Contains(p.Log.Since(0), part) {
				return errors.Join(p.Alive(), fmt.Errorf("the log does not say %q", part))
			}
		}
		return nil
	})
}

// meshFinalizers are those of objects of the mesh.
func (w world) meshFinalizers(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, list := range []client.ObjectList{&kumav1alpha1.MeshList{}, &kumav1alpha1.DataplaneList{}, &kumav1alpha1.MeshServiceList{}} {
		if err := w.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if object := item.(client.Object); len(object.GetFinalizers()) > 0 {
				all[object.GetName()] = object.GetFinalizers()
			}
			return nil
		})
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (w world) pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := w.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// servingPods waits until a namespace has so many pods that are ready.
func (w world) servingPods(t *testing.T, namespace string, count int) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		list := &corev1.PodList{}
		if err := w.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		ready := 0
		for _, pod := range list.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.Status.PodIP != "" {
					ready++
				}
			}
		}
		if ready != count {
			return fmt.Errorf("%d of %d pods are ready in %s", ready, count, namespace)
		}
		return nil
	})
}

// keepsHeadless waits until Fairlead keeps the MeshService of the pod of the headless Service.
func (w world) keepsHeadless(t *testing.T) {
	t.Helper()
	for _, pod := range w.pods(t, "data") {
		key := metav1.ObjectMeta{Namespace: "data", Name: pod.Name + "-6d8b4c"}
		harness.WaitFor(t, w, &kumav1alpha1.MeshService{ObjectMeta: key}, func(live *kumav1alpha1.MeshService) error {
			if live.Status.ObservedGeneration != live.Generation || live.Status.DataplaneProxies.Total != 1 || !writtenBy(live, "fairlead/meshservice") || metav1.GetControllerOf(live) == nil {
				return fmt.Errorf("status %+v, labels %v, owners %+v", live.Status, live.Labels, live.OwnerReferences)
			}
			return nil
		})
	}
	wait.Until(t, func(ctx context.Context) error {
		list := &kumav1alpha1.MeshServiceList{}
		if err := w.List(ctx, list, client.InNamespace("data")); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d MeshServices of one pod", len(list.Items))
		}
		return nil
	})
}

// meshUIDs are the objects of the mesh.
func (w world) meshUIDs(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	dataplanes, services := &kumav1alpha1.DataplaneList{}, &kumav1alpha1.MeshServiceList{}
	if err := errors.Join(w.List(t.Context(), dataplanes), w.List(t.Context(), services)); err != nil {
		t.Fatal(err)
	}
	for _, d := range dataplanes.Items {
		all["Dataplane "+d.Name] = fmt.Sprintf("%s at %s", d.UID, d.Spec.Networking.Address)
	}
	for _, s := range services.Items {
		all["MeshService "+s.Name] = fmt.Sprintf("%s with %v", s.UID, s.Status.VIPs)
	}
	return all
}

// generated waits until Fairlead keeps the MeshService of cart, with these ports.
func (w world) generated(t *testing.T, ports ...int32) {
	t.Helper()
	harness.WaitFor(t, w, &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, func(live *kumav1alpha1.Mesh) error {
		return harness.CheckCondition(live.Status.Conditions, kumav1alpha1.ConditionGenerated, metav1.ConditionTrue, kumav1alpha1.ReasonGenerated)
	})
	harness.WaitFor(t, w, &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}, func(live *kumav1alpha1.MeshService) error {
		var has []int32
		for _, port := range live.Spec.Ports {
			has = append(has, port.Port)
		}
		if fmt.Sprint(has) != fmt.Sprint(ports) || live.Status.ObservedGeneration != live.Generation || live.Status.DataplaneProxies.Total != 2 || !writtenBy(live, "fairlead/meshservice") {
			return fmt.Errorf("ports %v, status %+v, labels %v", has, live.Status, live.Labels)
		}
		return nil
	})
}
