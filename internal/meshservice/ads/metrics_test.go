package ads

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/resource"
)

// measured is the value of a metric for a mesh, zero where there is none.
func measured(t *testing.T, name, mesh string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && metric.GetLabel()[0].GetValue() == mesh {
				return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestMetrics(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		const connected, refused = "fairlead_mesh_connected_proxies", "fairlead_mesh_refusals_total"
		id := model.ProxyID{Mesh: "metered", Namespace: "shop", Name: "cart-0"}
		before := measured(t, refused, id.Mesh)
		store := NewStoreAt(brisk())
		store.Set(id, config(1, "bad"))
		address := serve(t, Options{Store: store}, nil)
		first, second := dial(t, address, nil), dial(t, address, nil)
		one := connect(t, first, id.String(), delta)
		one.against = func(n news) string {
			if n.of == resource.Cluster {
				return "I do not like it"
			}
			return ""
		}
		one.ask(resource.Cluster)
		connect(t, second, id.String(), delta).ask(resource.Cluster)
		eventually(t, "the refusal is counted", func() bool { return measured(t, refused, id.Mesh) > before })
		eventually(t, "two streams of one proxy are counted as one", func() bool {
			store.proxies[id].mu.Lock()
			streams := len(store.proxies[id].sessions)
			store.proxies[id].mu.Unlock()
			return streams == 2 && measured(t, connected, id.Mesh) == 1
		})
		_ = first.Close()
		_ = second.Close()
		eventually(t, "nobody is counted", func() bool { return measured(t, connected, id.Mesh) == 0 })
	})
}
