package workload

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// recall takes from the status what only the operator knows, for those who look from outside: what was refused. A status
// that is older than the last request to try again, which is the time of it if `fairlead retry` made it, is of no use.
func (o *Observed) recall() {
	status := o.Istio.Status.WorkloadMigration
	if o.run().IsZero() || status.State != v1.WorkloadMigrationStateFailed || status.CompletionTime == nil {
		return
	}
	asked, err := time.Parse(time.RFC3339Nano, o.retry())
	// The status has whole seconds.
	if err == nil && asked.Truncate(time.Second).After(status.CompletionTime.Time) {
		return
	}
	o.Refused = map[types.UID]Refusal{}
	for _, failure := range status.Failures {
		refusal := Refusal{Reason: passage.Because(v1.ReasonRefused, "%s", failure.Reason), At: failure.Timestamp.Time}
		if strings.HasPrefix(failure.Reason, setBack) {
			refusal.Code = passage.Code(v1.ReasonContested)
		}
		switch {
		case failure.Kind == kindNamespace:
			o.Refused[o.Fleet.Namespaces[failure.Name].UID] = refusal
		case strings.HasPrefix(failure.Reason, refusedBy):
			if d := deploymentOf(o.Fleet, deployment(failure.Namespace, failure.Name)); d != nil {
				o.Refused[d.UID] = refusal
			}
		}
	}
	o.untold = len(status.Failures) == v1.MaxReportedFailures && !o.Batching().FailFast
}

// Aim is what would be seen if another revision were the target.
func (o Observed) Aim(target Target) Observed {
	o.Target, o.Refused, o.untold = target, nil, false
	return o
}

// failedUntold is why a step has failed that nothing is known of: a migration that has ended leaves nothing pending, and its
// status has no room for more.
func (p planner) failedUntold() *passage.Reason {
	if !p.untold {
		return nil
	}
	return passage.Hold(v1.ReasonRefused, "it failed like others; the operator's log says why")
}
