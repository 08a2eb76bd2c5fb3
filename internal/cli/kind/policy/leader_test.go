package policy

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
)

// While no operator leads, the last report is neither a success nor a failure.
func TestExitCodeWithoutLeader(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	held := func(by string, renewed time.Duration) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "fairlead-adoption"}}
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr.To(by), ptr.To[int32](12)
		l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now.Add(-renewed)))
		return l
	}
	for name, c := range map[string]struct {
		lease *coordinationv1.Lease
		state passage.State
		want  int
	}{
		"done, and an operator leads":                     {held("a", time.Second), passage.Done, console.ExitOK},
		"done, and whether one leads is unknown":          {nil, passage.Done, console.ExitOK},
		"done, and the lease is released":                 {held("", time.Second), passage.Done, console.ExitUnfinished},
		"done, and the lease has run out":                 {held("a", time.Minute), passage.Done, console.ExitUnfinished},
		"done, and the clocks differ":                     {held("a", 40*time.Second), passage.Done, console.ExitOK},
		"failed, and an operator leads":                   {held("a", time.Second), passage.Failed, console.ExitFailed},
		"failed, and the lease has run out":               {held("a", time.Hour), passage.Failed, console.ExitUnfinished},
		"nothing is selected, and the lease has run out":  {held("a", time.Hour), "", console.ExitUnfinished},
		"nothing is selected, and an operator leads":      {held("a", time.Second), "", console.ExitOK},
		"in progress, and whether one leads is not known": {nil, passage.Running, console.ExitUnfinished},
	} {
		t.Run(name, func(t *testing.T) {
			plan := passage.Plan{Subject: passage.Object{Kind: "PropagationPolicy", Namespace: "shop", Name: "p"}}
			if c.state != "" {
				plan.Steps = []passage.Step{{Object: passage.Object{Kind: "Deployment", Name: "cart"}, State: c.state}}
			}
			steps := leaderSteps(c.lease, plan.Subject, now)
			plan.Steps = append(plan.Steps, steps...)
			report := render.NewStatusReport(plan, passage.Batching{}, nil, true, now)
			if got := console.ExitCode(report.ExitError(), true); got != c.want {
				t.Errorf("got %d, with %v", got, steps)
			}
		})
	}
	want := "by the Lease kube-system/fairlead-adoption, no operator leads the passage since 2030-01-01T11:00:00Z, and what has changed since then is unknown: is the operator running?"
	if steps := leaderSteps(held("a", time.Hour), passage.Object{}, now); len(steps) != 1 || steps[0].Reason.Message != want {
		t.Errorf("got %v", steps)
	}
}
