package desired

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

var (
	onKubernetes = ZoneInfo{Environment: Kubernetes, Zone: "east", SystemNamespace: "kuma-system"}
	inUniversal  = ZoneInfo{Environment: Universal, Zone: "east", SystemNamespace: "kuma-system"}
)

func TestIdentityOf(t *testing.T) {
	labels := func(name, namespace, zone string) map[string]string {
		all := map[string]string{}
		for label, value := range map[string]string{
			kumav1alpha1.LabelDisplayName: name, kumav1alpha1.LabelNamespace: namespace, kumav1alpha1.LabelZone: zone,
		} {
			if value != "" {
				all[label] = value
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		where    ZoneInfo
		name, in string
		labels   map[string]string
		wantTo   Identity
	}{
		"of a namespace":                {onKubernetes, "cart", "shop", labels("cart", "shop", "east"), Identity{"cart", "shop", "east", true}},
		"one that claims to be another": {onKubernetes, "mine", "tenant", labels("cart", "shop", "west"), Identity{"mine", "tenant", "east", true}},
		"without labels":                {onKubernetes, "cart", "shop", nil, Identity{"cart", "shop", "east", true}},
		"synced":                        {onKubernetes, "cart-2f4b", "kuma-system", labels("cart", "shop", "west"), Identity{"cart", "shop", "west", false}},
		"synced, with Kuma's label": {onKubernetes, "cart-2f4b", "kuma-system", map[string]string{
			kumav1alpha1.LabelDisplayName: "cart", kumav1alpha1.LabelKubernetesNamespace: "shop", kumav1alpha1.LabelZone: "west",
		}, Identity{"cart", "shop", "west", false}},
		"of the system namespace itself": {onKubernetes, "dns", "kuma-system", nil, Identity{"dns", "kuma-system", "east", true}},
		"universal":                      {inUniversal, "backend", "kuma-system", nil, Identity{"backend", "", "east", true}},
		"universal, of another mesh":     {inUniversal, "backend.other", "kuma-system", labels("backend", "", "east"), Identity{"backend", "", "east", true}},
		"universal, with a namespace":    {inUniversal, "backend", "kuma-system", labels("", "shop", ""), Identity{"backend", "", "east", true}},
		"synced into universal":          {inUniversal, "cart-2f4b", "kuma-system", labels("cart", "shop", "west"), Identity{"cart", "shop", "west", false}},
	} {
		t.Run(name, func(t *testing.T) {
			got := IdentityOf(&metav1.ObjectMeta{Name: c.name, Namespace: c.in, Labels: c.labels}, c.where)
			if got != c.wantTo {
				t.Errorf("it is %+v, want %+v", got, c.wantTo)
			}
		})
	}
}

func TestMeshOf(t *testing.T) {
	labelled := metav1.ObjectMeta{Labels: map[string]string{kumav1alpha1.LabelMesh: "label"}}
	for name, c := range map[string]struct {
		object metav1.Object
		want   string
	}{
		"nothing":                 {&kumav1alpha1.Dataplane{}, "default"},
		"label":                   {&kumav1alpha1.Dataplane{ObjectMeta: labelled}, "label"},
		"field":                   {&kumav1alpha1.Dataplane{Mesh: "field"}, "field"},
		"label before field":      {&kumav1alpha1.Dataplane{ObjectMeta: labelled, Mesh: "field"}, "label"},
		"field of a policy":       {&kumav1alpha1.MeshTimeout{PolicyReport: kumav1alpha1.PolicyReport{Mesh: "field"}}, "field"},
		"policy, label and field": {&kumav1alpha1.MeshHTTPRoute{ObjectMeta: labelled, PolicyReport: kumav1alpha1.PolicyReport{Mesh: "field"}}, "label"},
		"kind without the field":  {&kumav1alpha1.MeshService{ObjectMeta: labelled}, "label"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MeshOf(c.object); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The annotation is written by anybody who writes a Dataplane, and recorded for each consumer.
func TestConsumerIsBounded(t *testing.T) {
	for text, want := range map[string]string{
		"Deployment/cart": "shop/Deployment/cart", "": "shop/Dataplane/one", "Deployment/" + strings.Repeat("x", 500): "shop/Dataplane/one",
	} {
		dataplane := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "one", Annotations: map[string]string{kumav1alpha1.AnnotationConsumer: text},
		}}
		if got := ConsumerIn(dataplane, onKubernetes); got != want {
			t.Errorf("%.20q is %s, want %s", text, got, want)
		}
	}
}
