package generate

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Coming and going is news, and nothing between.
func TestPresence(t *testing.T) {
	p := connectionTracker{connected: map[model.ProxyID]bool{}}
	for i, c := range []struct{ connected, news bool }{{false, true}, {true, true}, {true, false}, {false, true}, {true, true}} {
		if got := p.changed(model.ProxyID{Name: "cart"}, func() bool { return c.connected }); got != c.news {
			t.Errorf("%d: it is news: %t", i, got)
		}
	}
}

// A proxy of universal finds its Dataplane in whatever namespace that is.
func TestProxyIndex(t *testing.T) {
	dataplane := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: "shop", Labels: map[string]string{kumav1alpha1.LabelMesh: "m"}}}
	for environment, id := range map[string]model.ProxyID{
		desired.Universal:  {Mesh: "m", Name: "cart"},
		desired.Kubernetes: {Mesh: "m", Namespace: "shop", Name: "cart"},
	} {
		r := &reconciler{Options: Options{ZoneInfo: desired.ZoneInfo{Environment: environment, SystemNamespace: "kuma-system"}}}
		if got := r.proxyIndex(dataplane); !slices.Equal(got, []string{id.String()}) {
			t.Errorf("in %s it is found by %v", environment, got)
		}
	}
}
