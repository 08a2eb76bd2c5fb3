package generate

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// A consumer that reaches tags, and in mode Exclusive would reach nothing, is named.
func TestStranded(t *testing.T) {
	const cart, backend = "shop/Deployment/cart", "backend_shop_svc_80"
	tag := model.Destination{Target: model.Target{Key: model.TagKey(backend)}}
	service := model.Destination{Target: model.Target{
		Key: model.Key{Kind: model.MeshService, Name: "backend", Namespace: "shop", Zone: "east", Mesh: "default", Port: 80}, Name: "backend", Namespace: "shop",
		Labels: map[string]string{kumav1alpha1.LabelDisplayName: "backend", kumav1alpha1.LabelNamespace: "shop"},
	}}
	both := []model.Destination{tag, service}
	services := func(names ...string) *kumav1alpha1.TransparentProxying {
		return &kumav1alpha1.TransparentProxying{ReachableServices: names}
	}
	refs := func(refs ...kumav1alpha1.ReachableBackendRef) *kumav1alpha1.TransparentProxying {
		return &kumav1alpha1.TransparentProxying{ReachableBackendRefs: &kumav1alpha1.BackendRefs{Items: refs}}
	}
	for name, c := range map[string]struct {
		lists        *kumav1alpha1.TransparentProxying
		destinations []model.Destination
		switched     bool
		want         bool
	}{
		"lists nothing":                               {nil, both, false, false},
		"lists nothing, and there are only tags":      {nil, []model.Destination{tag}, false, true},
		"lists nothing, and there is nothing":         {nil, nil, false, false},
		"lists a tag":                                 {services(backend), both, false, true},
		"lists a tag, and is switched":                {services(backend), both, true, false},
		"lists a tag without a MeshService, switched": {services(backend), []model.Destination{tag}, true, true},
		"lists a tag that nobody serves":              {services("other"), both, false, false},
		"lists the MeshService":                       {refs(kumav1alpha1.ReachableBackendRef{Kind: "MeshService", Name: "backend"}), both, false, false},
		"lists another MeshService":                   {refs(kumav1alpha1.ReachableBackendRef{Kind: "MeshService", Name: "other"}), both, false, true},
		"lists no MeshService":                        {refs(), both, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			dataplane := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{
				Name: "cart-0", Namespace: "shop", Annotations: map[string]string{kumav1alpha1.AnnotationConsumer: "Deployment/cart"},
			}}
			dataplane.Spec.Networking.TransparentProxying = c.lists
			where := desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "east", SystemNamespace: "kuma-system"}
			got := stranded([]*kumav1alpha1.Dataplane{dataplane}, c.destinations, map[string]bool{cart: c.switched}, where)
			if slices.Contains(got, cart) != c.want {
				t.Errorf("%v would be left with nothing, want %v", got, c.want)
			}
		})
	}
}
