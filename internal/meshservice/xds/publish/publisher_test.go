package publish

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// onSet is a store in which something happens while a proxy is given its configuration.
type onSet struct{ happens func() }

func (s onSet) Set(model.ProxyID, *resource.Config) { s.happens() }
func (onSet) Forget(model.ProxyID)                  {}

// The addresses of a mesh may come while the proxies of another are served: its own have been given nothing then.
func TestSentIsWhatWasGiven(t *testing.T) {
	where := desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "east", SystemNamespace: "kuma-system"}
	store := &onSet{}
	p := New(nil, snapshot.New(where), store, where)
	for _, mesh := range []string{"one", "two"} {
		p.put(&kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: mesh}})
		p.put(&kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{
			Name: "cart", Namespace: mesh, Labels: map[string]string{kumav1alpha1.LabelMesh: mesh},
		}})
	}
	addresses := func(mesh string) {
		p.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: desired.VIPConfigMap(mesh), Namespace: where.SystemNamespace, Labels: map[string]string{kumav1alpha1.LabelMesh: mesh},
		}})
	}
	store.happens = func() { addresses("two") }
	addresses("one")
	p.flush()
	for mesh, want := range map[string]bool{"one": true, "two": false} {
		if _, sent := p.SwitchedConsumers(mesh); sent != want {
			t.Errorf("the proxies of mesh %s count as given their configuration: %v", mesh, sent)
		}
	}
	p.flush()
	if _, sent := p.SwitchedConsumers("two"); !sent {
		t.Error("the proxies of mesh two were given theirs")
	}
}
