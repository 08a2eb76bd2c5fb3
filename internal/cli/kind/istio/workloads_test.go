package istio

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
)

func workloadStep(kind, name string, action passage.Action, state passage.State, change func(*passage.Step)) passage.Step {
	s := passage.Step{
		Object: passage.Object{APIVersion: "apps/v1", Kind: kind, Namespace: "shop", Name: name}, Action: action,
		From: "default-v1-24-0", To: "default-v1-26-0", State: state, Disruptive: kind == "Deployment",
		Reason: passage.Because("Why", "selected by the pod label"),
	}
	if kind == "Namespace" {
		s.Object.Namespace = ""
	}
	if change != nil {
		change(&s)
	}
	return s
}

func inBatch(batch int) func(*passage.Step) {
	return func(s *passage.Step) { s.Batch, s.StartedAt = batch, now.Add(-time.Minute) }
}

func running(progress string) func(*passage.Step) {
	return func(s *passage.Step) { inBatch(1)(s); s.Progress = progress }
}

func because(message string) func(*passage.Step) {
	return func(s *passage.Step) { s.Reason = passage.Because("Why", "%s", message) }
}

func moving(hold *passage.Reason, steps ...passage.Step) *workloads {
	return &workloads{
		plan: passage.Plan{
			Passage: "migration", Subject: istioObject("default"), Target: "default-v1-26-0", Moves: []string{"Deployment"},
			Hold: hold, Steps: steps,
		},
		batching: passage.Batching{Size: 2, Delay: 30 * time.Second},
	}
}

func TestPrintWorkloadsPlan(t *testing.T) {
	cases := map[string]struct {
		workloads *workloads
		want      string
		code      int
	}{
		"nothing is moved at all": {nil, "", console.ExitOK},
		"all are there":           {moving(nil), "\nNo workload is left to move to default-v1-26-0.\n", console.ExitOK},
		"a plan": {
			moving(passage.Hold(v1.ReasonRevisionNotReady, "IstioRevision default-v1-26-0 is not ready"),
				workloadStep("Namespace", "shop", "relabel", passage.Pending, nil),
				workloadStep("Deployment", "cart", "restart", passage.Pending, nil),
				workloadStep("Deployment", "pay", "relabel", passage.Pending, nil),
				workloadStep("Deployment", "wish", "restart", passage.Pending, nil),
				workloadStep("Deployment", "old", "stay", passage.Skipped, because("its annotation says so")),
				workloadStep("StatefulSet", "db", "stay", passage.Skipped, because("a StatefulSet is not moved"))),
			`
Workloads to default-v1-26-0: the labels of 1 namespace, then 3 Deployments in 2 batches of at most
2, taking at least 30s and as long as pods need to get ready; 2 not moved.
Waiting: IstioRevision default-v1-26-0 is not ready

BATCH   HOW       OBJECT                 FROM              WHY
-       relabel   Namespace shop         default-v1-24-0   selected by the pod label
1       restart   Deployment shop/cart   default-v1-24-0   selected by the pod label
1       relabel   Deployment shop/pay    default-v1-24-0   selected by the pod label
2       restart   Deployment shop/wish   default-v1-24-0   selected by the pod label
-       stay      Deployment shop/old    default-v1-24-0   its annotation says so
-       stay      StatefulSet shop/db    default-v1-24-0   a StatefulSet is not moved
`, console.ExitUnfinished,
		},
		"refused": {
			moving(passage.Hold(v1.ReasonMaxVersionExceeded, "v1.26.0 is above batched.maxVersion 1.25.0"),
				workloadStep("Deployment", "cart", "restart", passage.Pending, nil)),
			`
Workloads to default-v1-26-0: 1 Deployment in 1 batch of at most 2, taking at least 0s and as long
as pods need to get ready.
Held: v1.26.0 is above batched.maxVersion 1.25.0

BATCH   HOW       OBJECT                 FROM              WHY
1       restart   Deployment shop/cart   default-v1-24-0   selected by the pod label
`, console.ExitUnfinished,
		},
		"only a failure is left": {
			moving(nil, workloadStep("Deployment", "cart", "restart", passage.Failed, func(s *passage.Step) {
				inBatch(1)(s)
				because("Readiness timeout exceeded after 5m0s")(s)
			})),
			`
Workloads to default-v1-26-0: none left of 1 Deployment; 1 failed.

BATCH   HOW      OBJECT                 FROM              WHY
1       failed   Deployment shop/cart   default-v1-24-0   Readiness timeout exceeded after 5m0s
`, console.ExitFailed,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			report := newPlan(observed{plan: planOf(nil), workloads: c.workloads}, now)
			var out bytes.Buffer
			report.Workloads.print(&out, render.Text)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
			if got := code(report.ExitError()); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
		})
	}
}

func TestPrintWorkloads(t *testing.T) {
	done := workloadStep("Deployment", "a", "restart", passage.Done, inBatch(1))
	cases := map[string]struct {
		workloads *workloads
		want      string
		code      int
	}{
		"in progress": {
			moving(nil, done, workloadStep("Deployment", "b", "restart", passage.Running, running("2/3 ready")),
				workloadStep("Deployment", "c", "restart", passage.Pending, nil)),
			`
Workloads to default-v1-26-0: InProgress
[##########>>>>>>>>>>..........] 1 of 3 done, 1 running, batch 1 of 2
waiting for Deployment shop/b to settle

BATCH   HOW       OBJECT              FROM              STATE       WHY
1       restart   Deployment shop/b   default-v1-24-0   2/3 ready   selected by the pod label
`, console.ExitUnfinished,
		},
		"paused": {
			moving(passage.Hold(v1.ReasonPaused, "paused by hand"), done, workloadStep("Deployment", "c", "restart", passage.Pending, nil)),
			`
Workloads to default-v1-26-0: Held
[###############...............] 1 of 2 done, batch 1 of 1
Held: paused by hand
`, console.ExitUnfinished,
		},
		"failed": {
			moving(nil, done, workloadStep("Deployment", "b", "restart", passage.Failed, func(s *passage.Step) {
				inBatch(1)(s)
				because("Readiness timeout exceeded after 5m0s")(s)
			})),
			`
Workloads to default-v1-26-0: Failed
[###############!!!!!!!!!!!!!!!] 1 of 2 done, 1 failed, batch 1 of 1
Deployment shop/b failed, all others have settled

BATCH   HOW       OBJECT              FROM              STATE    WHY
1       restart   Deployment shop/b   default-v1-24-0   Failed   Readiness timeout exceeded after
                                                                 5m0s
`, console.ExitFailed,
		},
		"completed": {
			moving(nil, done),
			`
Workloads to default-v1-26-0: Completed
[##############################] 1 of 1 done, batch 1 of 1
`, console.ExitOK,
		},
		"nothing to move": {moving(nil), "\nWorkloads to default-v1-26-0: Completed\n", console.ExitOK},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			report := newStatus(observed{istio: &v1.Istio{}, plan: planOf(nil), workloads: c.workloads}, now)
			var out bytes.Buffer
			printWorkloads(&out, render.Text, report.Workloads)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
			if got := code(report.ExitError()); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
		})
	}
}
