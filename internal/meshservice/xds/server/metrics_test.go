package server

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
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

// seriesOf counts what is measured of a mesh.
func seriesOf(t *testing.T, mesh string) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := 0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if labels := metric.GetLabel(); len(labels) > 0 && labels[0].GetName() == "mesh" && labels[0].GetValue() == mesh {
				series++
			}
		}
	}
	return series
}

func TestMetrics(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		const connected, refused = "fairlead_mesh_connected_proxies", "fairlead_mesh_refusals_total"
		id := model.ProxyID{Mesh: "metered", Namespace: "shop", Name: "cart-0"}
		before := measured(t, refused, id.Mesh)
		store := NewStoreWithTiming(brisk())
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

// A proxy may say twice what it says against an answer.
func TestARefusalIsCountedOnce(t *testing.T) {
	const refused = "fairlead_mesh_refusals_total"
	id := model.ProxyID{Mesh: "refusing", Name: "cart-0"}
	counted := measured(t, refused, id.Mesh)
	s := &session{proxy: &proxy{id: id, config: small(before)}, state: settled().streamState}
	page := &s.state.types[resource.Cluster]
	page.recordResponse(page.known, page.known, "v2", "v2")
	page.setNonce("7")
	for _, nonce := range []string{"", "6", "7", "7"} {
		s.acknowledge(resource.Cluster, nonce, "no")
	}
	if got := measured(t, refused, id.Mesh) - counted; got != 1 {
		t.Errorf("%v are counted", got)
	}
}

// What was measured of a mesh goes with its last proxy, whenever the streams end.
func TestMetricsOfAMeshThatGoes(t *testing.T) {
	id := model.ProxyID{Mesh: "leaving", Name: "cart-0"}
	_, end := context.WithCancelCause(context.Background())
	store := NewStore()
	store.Set(id, small(before))
	other := model.ProxyID{Mesh: id.Mesh, Name: "cart-1"}
	store.Set(other, small(before))
	one := &session{store: store, end: end, state: settled().streamState}
	if err := store.addSession(id, one); err != nil {
		t.Fatal(err)
	}
	refuses := func(nonce string) {
		page := &one.state.types[resource.Cluster]
		page.recordResponse(page.known, page.known, "v2", "v2")
		page.setNonce(nonce)
		one.acknowledge(resource.Cluster, nonce, "no")
	}
	refuses("7")
	store.Set(other, nil)
	store.Set(other, nil)
	if got := seriesOf(t, id.Mesh); got != 2 {
		t.Errorf("with one of its proxies left it has %d series", got)
	}
	store.Set(id, nil)
	refuses("8")
	store.removeSession(one)
	if got := seriesOf(t, id.Mesh); got != 0 {
		t.Errorf("%d series are left", got)
	}
}
