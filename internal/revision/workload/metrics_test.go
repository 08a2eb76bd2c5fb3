package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// gathered are the metrics of one Istio: gauges by their state, and of histograms the count and the sum.
func gathered(t *testing.T, istio string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "fairlead_migration_")
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			switch {
			case !ours || labels["istio"] != istio:
			case metric.GetHistogram() != nil:
				found[name+" count"] = float64(metric.GetHistogram().GetSampleCount())
				found[name+" sum"] = metric.GetHistogram().GetSampleSum()
			case name == "reason":
				found[name+" "+labels["reason"]] = metric.GetGauge().GetValue()
			default:
				found[name+" "+labels["state"]] = metric.GetGauge().GetValue()
			}
		}
	}
	return found
}

func TestMetrics(t *testing.T) {
	const istio = "metered"
	now := epoch
	m := newMetricsRecorder()
	m.now = func() time.Time { return now }
	step := func(name string, state passage.State, batch, started int) passage.Step {
		return passage.Step{Object: deploymentNamed("shop", name), State: state, Batch: batch, StartedAt: at(started), Disruptive: true}
	}
	observe := func(seconds, batch int, steps ...passage.Step) {
		now = at(seconds)
		m.observe(istio, passage.Decision{Plan: passage.Plan{Moves: []string{kindDeployment}, Steps: steps}, Batch: batch}, "")
	}
	states := func(pending, running, done, failed, skipped float64) map[string]float64 {
		return map[string]float64{
			"workloads Pending": pending, "workloads Running": running, "workloads Done": done,
			"workloads Failed": failed, "workloads Skipped": skipped,
		}
	}
	expect := func(when string, want map[string]float64, histograms ...float64) {
		t.Helper()
		if len(histograms) == 4 {
			want["readiness_seconds count"], want["readiness_seconds sum"] = histograms[0], histograms[1]
			want["batch_duration_seconds count"], want["batch_duration_seconds sum"] = histograms[2], histograms[3]
		}
		if len(histograms) == 2 {
			want["readiness_seconds count"], want["readiness_seconds sum"] = histograms[0], histograms[1]
		}
		if diff := cmp.Diff(want, gathered(t, istio)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	pending := step("c", passage.Pending, 0, 0)
	observe(0, 0, step("a", passage.Pending, 0, 0), step("b", passage.Pending, 0, 0), pending, step("d", passage.Skipped, 0, 0))
	expect("before", states(3, 0, 0, 0, 1))
	observe(10, 1, step("a", passage.Running, 1, 8), step("b", passage.Running, 1, 10), pending)
	expect("started", states(1, 2, 0, 0, 0))
	observe(20, 1, step("a", passage.Done, 1, 8), step("b", passage.Running, 1, 10), pending)
	expect("one is ready", states(1, 1, 1, 0, 0), 1, 12)
	observe(40, 1, step("a", passage.Done, 1, 8), step("b", passage.Failed, 1, 10), pending)
	expect("the batch has settled: a failure has no readiness time", states(1, 0, 1, 1, 0), 1, 12, 1, 32)
	observe(50, 2, step("a", passage.Done, 1, 8), step("b", passage.Failed, 1, 10), step("c", passage.Running, 2, 50))
	observe(55, 2, step("a", passage.Done, 1, 8), step("b", passage.Failed, 1, 10), step("c", passage.Done, 2, 50))
	expect("all done", states(0, 0, 2, 1, 0), 2, 17, 2, 37)
	m.forget(istio)
	if left := gathered(t, istio); len(left) > 0 {
		t.Errorf("of an Istio that is gone there is left: %v", left)
	}
	// A controller that comes later knows nothing of what is done already.
	observe(90, 2, step("a", passage.Done, 1, 8))
	expect("after a restart", states(0, 0, 1, 0, 0))
	m.forget(istio)
}

// What a dashboard shows as the reason, and an alert leaves out: a pause, or the delay between two batches.
func TestReasonOfAMigration(t *testing.T) {
	condition := func(reason v1.Reason) *metav1.Condition { return &metav1.Condition{Reason: string(reason)} }
	waits := func(code passage.Code) passage.Decision { return passage.Decision{Reason: &passage.Reason{Code: code}} }
	for want, of := range map[string]struct {
		condition *metav1.Condition
		decision  passage.Decision
	}{
		"":                        {nil, waits(passage.CodeNothingLeft)},
		"Paused":                  {condition(v1.ReasonPaused), waits("Paused")},
		"Migrating":               {condition(v1.ReasonMigrating), passage.Decision{}},
		"BatchDelay":              {condition(v1.ReasonMigrating), waits(passage.CodeBatchDelay)},
		"BatchRunning":            {condition(v1.ReasonMigrating), waits(passage.CodeBatchRunning)},
		"MigrationFailed":         {condition(v1.ReasonMigrationFailed), waits(passage.CodeStepFailed)},
		string(v1.ReasonMigrated): {condition(v1.ReasonMigrated), waits(passage.CodeNothingLeft)},
	} {
		if got := reasonOf(of.condition, of.decision); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
	m := newMetricsRecorder()
	m.observe("held", waits(passage.CodeBatchRunning), "BatchRunning")
	m.observe("held", waits(passage.CodeBatchDelay), "BatchDelay")
	if got := gathered(t, "held"); got["reason BatchDelay"] != 1 || got["reason BatchRunning"] != 0 {
		t.Errorf("%v", got)
	}
	m.forget("held")
	if left := gathered(t, "held"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
