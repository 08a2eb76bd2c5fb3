package installer

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// RefusedRetryInterval is how often an object that the API server refused is tried again: a policy may change without an
// event.
const RefusedRetryInterval = 5 * time.Minute

// refusalRemedy ends the message of a refusal.
const refusalRemedy = "retried every 5 minutes, and at once when the spec or the charts change"

// refusedBefore repeats the message of a refusal that the status reports.
type refusedBefore string

func (r refusedBefore) Error() string { return string(r) }

// SkipRefused sets the error of a release that was refused with the same spec, so that it is not tried again before
// RefusedRetryInterval. Without it, every event would cause an attempt.
func (r *Release) SkipRefused(conditions []metav1.Condition, generation int64, now time.Time) {
	condition := meta.FindStatusCondition(conditions, string(v1.ConditionReconciled))
	if condition == nil || condition.Reason != string(v1.ReasonRefused) || condition.ObservedGeneration != generation {
		return
	}
	if r.Err == nil && r.hasFailed() && now.Before(r.Attempted.Add(RefusedRetryInterval)) {
		r.Err = refusedBefore(condition.Message)
	}
}

// hasFailed tells whether installing the wanted spec was attempted and has failed.
func (r Release) hasFailed() bool {
	return r.Wanted != nil && r.State.Exists && !r.State.Deployed() && r.State.Fingerprint == r.Wanted.Fingerprint()
}
