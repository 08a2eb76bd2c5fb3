package consumers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// measured are the consumers of a mesh by state, those of which there are none left out, and why its switch is where it is.
func measured(t *testing.T, mesh string) (counts map[string]float64, series int) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts = map[string]float64{}
	for _, family := range families {
		if name := family.GetName(); name != "fairlead_mesh_consumers" && name != "fairlead_mesh_switch_reason" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if labels := metric.GetLabel(); labels[0].GetValue() == mesh {
				series++
				if n := metric.GetGauge().GetValue(); n > 0 {
					counts[strings.TrimPrefix(labels[1].GetName()+" ", "state ")+labels[1].GetValue()] = n
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
	setMetrics("metered", record("Waiting", "Waiting", "Switching"), &metav1.Condition{Reason: kumav1alpha1.ReasonSwitching})
	setMetrics("metered", record("Switched", "Failed", "Switched"), &metav1.Condition{Reason: kumav1alpha1.ReasonFailed})
	got, series := measured(t, "metered")
	if diff := cmp.Diff(map[string]float64{"Switched": 2, "Failed": 1, "reason Failed": 1}, got); diff != "" || series != 7 {
		t.Errorf("%d series: %s", series, diff)
	}
	delaying := record("Switched", "Waiting")
	delaying.Phase = string(passage.Delaying)
	setMetrics("metered", delaying, &metav1.Condition{Reason: kumav1alpha1.ReasonSwitching})
	if got, _ := measured(t, "metered"); got["reason BatchDelay"] != 1 || got["reason Failed"] != 0 {
		t.Errorf("between two batches: %v", got)
	}
	deleteMetrics("metered")
	if _, series := measured(t, "metered"); series != 0 {
		t.Errorf("%d series are left of a mesh that is gone", series)
	}
}

// What is logged of a switch: each consumer once, when it begins.
func TestStartedSteps(t *testing.T) {
	record := func(states ...kumav1alpha1.ConsumerState) *kumav1alpha1.MeshMigration {
		r := &kumav1alpha1.MeshMigration{Batch: 1, Batches: 2}
		for i, s := range states {
			r.Consumers = append(r.Consumers, kumav1alpha1.MigratedConsumer{Name: string(rune('a' + i)), State: s, Batch: 1})
		}
		return r
	}
	started := func(before, after *kumav1alpha1.MeshMigration) (all []string) {
		for _, step := range startedSteps(before, after) {
			all = append(all, string(step.Action)+" "+step.Object.Name+" from "+step.From+" to "+step.To+", "+step.Reason.String())
		}
		return all
	}
	first := started(nil, record("Switching", "Waiting"))
	if diff := cmp.Diff([]string{"switch a from kuma.io/service to MeshService, Switching: batch 1 of 2"}, first); diff != "" {
		t.Error(diff)
	}
	if again := started(record("Switching", "Waiting"), record("Switching", "Waiting")); again != nil {
		t.Errorf("logged again: %v", again)
	}
	reverted := started(record("Switched", "Failed"), record("Reverting", "Failed"))
	if diff := cmp.Diff([]string{"revert a from MeshService to kuma.io/service, Reverting: batch 1 of 2"}, reverted); diff != "" {
		t.Error(diff)
	}
}
