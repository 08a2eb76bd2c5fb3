package workload

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// failuresOf are the most recent failures, in the order in which they happened. When a step failed that was never started
// is not recorded: such a failure is as old as the migration.
func failuresOf(plan passage.Plan, start time.Time) []v1.WorkloadMigrationFailure {
	var failures []v1.WorkloadMigrationFailure
	for i := range plan.Steps {
		step := &plan.Steps[i]
		if step.State != passage.Failed {
			continue
		}
		failures = append(failures, v1.WorkloadMigrationFailure{
			Namespace: step.Object.Namespace, Name: step.Object.Name, Kind: step.Object.Kind,
			Reason: step.Reason.Message, Code: v1.Reason(step.Reason.Code),
			Timestamp: metav1.NewTime(latest(start, step.EndedAt).Truncate(time.Second)),
		})
	}
	slices.SortStableFunc(failures, func(a, b v1.WorkloadMigrationFailure) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	return failures[max(0, len(failures)-v1.MaxReportedFailures):]
}

// restoreFailures reads from the status which writes were refused: the operator keeps that in memory, and the CLI has only
// the status. A status that is older than the last request to retry does not count. `fairlead retry` writes the time of the
// request.
func (o *Observed) restoreFailures() {
	status := o.Istio.Status.WorkloadMigration
	if o.lastRunStart().IsZero() || status.State != v1.WorkloadMigrationStateFailed || status.CompletionTime == nil {
		return
	}
	requested, err := time.Parse(time.RFC3339Nano, o.retryRequest())
	// The status has whole seconds.
	if err == nil && requested.Truncate(time.Second).After(status.CompletionTime.Time) {
		return
	}
	o.Refused = map[types.UID]Refusal{}
	for _, failure := range status.Failures {
		code := failure.Code
		if code == "" {
			code = legacyCode(failure)
		}
		if code != v1.ReasonRefused && code != v1.ReasonContested {
			continue
		}
		refusal := Refusal{Reason: passage.Because(code, "%s", failure.Reason), At: failure.Timestamp.Time}
		if failure.Kind == kindNamespace {
			o.Refused[o.Inventory.Namespaces[failure.Name].UID] = refusal
		} else if w := o.Inventory.Find(failure.Kind, failure.Namespace, failure.Name); w != nil {
			o.Refused[w.UID] = refusal
		}
	}
	o.unreportedFailures = len(status.Failures) == v1.MaxReportedFailures && !o.Batching().FailFast
}

// WithTarget is what would be seen if another revision were the target.
func (o Observed) WithTarget(target Target) Observed {
	o.Target, o.Refused, o.unreportedFailures, o.Injection, o.reportedInjection = target, nil, false, nil, nil
	return o
}

// unreportedReason is why a step has failed whose failure the status has no room for: a migration that has ended leaves no
// step pending.
func (p *planner) unreportedReason() *passage.Reason {
	if !p.unreportedFailures {
		return nil
	}
	return passage.NewReason(v1.ReasonNotReported, "failed, and the status has no room for the reason; see the operator's log")
}

// legacyCode is the code of a failure that was written by an operator of schema version 2 of istios.sailoperator.io or
// older, before November 2026: such a failure has a text and no code. The texts are those of that time and never change.
// The first status that this operator writes has codes.
func legacyCode(failure v1.WorkloadMigrationFailure) v1.Reason {
	switch {
	case strings.HasPrefix(failure.Reason, "its label was moved to "):
		return v1.ReasonContested
	case failure.Kind == kindNamespace, strings.HasPrefix(failure.Reason, "the API server refused it: "):
		return v1.ReasonRefused
	}
	return ""
}
