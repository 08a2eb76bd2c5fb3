package forecast

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// A plan of mode Exclusive lists what holds it back: values that cannot be names, and consumers that would reach nothing.
func TestWhatHoldsExclusive(t *testing.T) {
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	w := NewMeshState(mesh, &corev1.ConfigMap{}, desired.ZoneInfo{Environment: desired.Universal, Zone: "east"})
	for name, lists := range map[string]*kumav1alpha1.TransparentProxying{
		"backend": nil, "pay_api": nil, "cart": {ReachableServices: []string{"backend"}},
	} {
		d := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Name: "dp-" + name, Namespace: "kuma-system"}}
		d.Spec.Networking.Address, d.Spec.Networking.TransparentProxying = "10.0.0.1", lists
		d.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 80, Tags: map[string]string{kumav1alpha1.TagService: name}}}
		w.Add(d)
	}
	for mode, want := range map[model.Mode][]string{
		model.Exclusive: {"dp-cart", "kuma.io/service pay_api"}, model.Everywhere: nil,
	} {
		f, err := Compare(w, Scenario{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range f.Problems {
			if p.New && p.Remedy != "" {
				got = append(got, p.Object)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("mode %s: %q are listed, want %q", mode, got, want)
		}
	}
}

// A plan names the MeshServices that somebody wrote with the name of a Service, in whatever mesh: they hold back nothing.
func TestPlanNamesBlockedServices(t *testing.T) {
	namespace := read(t, &corev1.Namespace{}, `{metadata: {name: shop, labels: {kuma.io/sidecar-injection: enabled}}}`)
	cart := read(t, &corev1.Service{}, `{metadata: {name: cart, namespace: shop}, spec: {clusterIP: 10.0.0.7, selector: {app: cart}, ports: [{port: 80}]}}`)
	stock := read(t, &corev1.Service{}, `{metadata: {name: stock, namespace: shop}, spec: {clusterIP: 10.0.0.8, selector: {app: stock}, ports: [{port: 80}]}}`)
	theirs := read(t, &kumav1alpha1.MeshService{}, `{metadata: {name: cart, namespace: shop, labels: {kuma.io/mesh: other}}, spec: {ports: [{port: 80}]}}`)
	w := NewMeshState(&kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, &corev1.ConfigMap{}, desired.ZoneInfo{Zone: "east"})
	for _, object := range []model.Object{namespace, cart, stock, theirs} {
		w.Add(object)
	}
	f, err := Compare(w, Scenario{Mode: model.Exclusive})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Made, []string{"shop/stock"}) {
		t.Errorf("%v are generated", f.Made)
	}
	if len(f.Problems) != 1 || f.Problems[0].Object != "MeshService shop/cart" || !f.Problems[0].New {
		t.Errorf("the problems are %+v", f.Problems)
	}
}
