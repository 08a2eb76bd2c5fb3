package installer

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// RefusedRetryInterval is how long the API server's refusal of an object is taken for its last word. It may be a policy's, which
// somebody can change without anything that we would notice.
const RefusedRetryInterval = 5 * time.Minute

// refusalRemedy says in a status what becomes of what was refused.
const refusalRemedy = "retried every 5 minutes, and at once when the spec or the charts change"

// refusedBefore is what the status tells of an attempt that the API server has refused.
type refusedBefore string

func (r refusedBefore) Error() string { return string(r) }

// SkipRefused keeps a release from being tried again too soon that was refused, as the status says of the same spec and the
// record of the same release. Without it, any event would be a reason to try.
func (r *Release) SkipRefused(told []metav1.Condition, generation int64, now time.Time) {
	condition := meta.FindStatusCondition(told, string(v1.ConditionReconciled))
	if condition == nil || condition.Reason != string(v1.ReasonRefused) || condition.ObservedGeneration != generation {
		return
	}
	if r.Err == nil && r.hasFailed() && now.Before(r.Attempted.Add(RefusedRetryInterval)) {
		r.Err = refusedBefore(condition.Message)
	}
}

// hasFailed means that what is wanted has been tried, and has not been carried through.
func (r Release) hasFailed() bool {
	return r.Wanted != nil && r.State.Exists && !r.State.Deployed() && r.State.Fingerprint == r.Wanted.Fingerprint()
}
