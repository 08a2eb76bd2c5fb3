package consumers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// measured are the consumers of a mesh by state, those of which there are none left out.
func measured(t *testing.T, mesh string) (counts map[string]float64, series int) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts = map[string]float64{}
	for _, family := range families {
		if family.GetName() != "fairlead_mesh_consumers" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if labels := metric.GetLabel(); labels[0].GetValue() == mesh {
				series++
				if n := metric.GetGauge().GetValue(); n > 0 {
					counts[labels[1].GetValue()] = n
				}
			}
		}
	}
	return counts, series
}

func TestMetrics(t *testing.T) {
	record := func(states ...kumav1alpha1.ConsumerState) *kumav1alpha1.MeshMigration {
		r := &kumav1alpha1.MeshMigration{}
		for _, s := range states {
			r.Consumers = append(r.Consumers, kumav1alpha1.MigratedConsumer{State: s})
		}
		return r
	}
	setMetrics("metered", record("Waiting", "Waiting", "Switching"))
	setMetrics("metered", record("Switched", "Failed", "Switched"))
	got, series := measured(t, "metered")
	if diff := cmp.Diff(map[string]float64{"Switched": 2, "Failed": 1}, got); diff != "" || series != 6 {
		t.Errorf("%d series: %s", series, diff)
	}
	deleteMetrics("metered")
	if _, series := measured(t, "metered"); series != 0 {
		t.Errorf("%d series are left of a mesh that is gone", series)
	}
}
