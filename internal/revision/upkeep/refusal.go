package upkeep

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// refusedBefore is what the status tells of an attempt that the API server has refused.
type refusedBefore string

func (r refusedBefore) Error() string { return string(r) }

// Heed keeps a release from being tried again that was refused, as the status says of the same spec and the record of
// the same release. Without it, any event would be a reason to try.
func (r *Release) Heed(told []metav1.Condition, generation int64) {
	condition := meta.FindStatusCondition(told, string(v1.ConditionReconciled))
	if condition == nil || condition.Reason != string(v1.ReasonRefused) || condition.ObservedGeneration != generation {
		return
	}
	if r.Err == nil && r.Wanted != nil && !r.State.Deployed() && r.State.Fingerprint == r.Wanted.Fingerprint() {
		r.Err = refusedBefore(condition.Message)
	}
}
