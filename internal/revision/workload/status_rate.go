package workload

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// statusChange is how urgent a change of the status is.
type statusChange uint8

const (
	unchanged statusChange = iota
	// countersChanged means that only counters differ.
	countersChanged
	// batchChanged means that a batch has ended or begun.
	batchChanged
	// stateChanged is written at once.
	stateChanged
)

// How often the status is written at most: when a batch ends or begins, and when no more than counters have changed.
const (
	batchStatusInterval   = time.Second
	counterStatusInterval = 5 * time.Second
)

func statusChangeOf(before, now *v1.WorkloadMigrationStatus) statusChange {
	switch {
	case equality.Semantic.DeepEqual(before, now):
		return unchanged
	case before == nil || now == nil || before.State != now.State || before.TargetRevision != now.TargetRevision ||
		before.FailedWorkloads != now.FailedWorkloads:
		return stateChanged
	case !equality.Semantic.DeepEqual(before.Batched, now.Batched):
		return batchChanged
	}
	return countersChanged
}

// statusDelay limits the rate of status writes, so that a thousand workloads do not cost a thousand writes.
func (r *reconciler) statusDelay(istio string, n statusChange, now time.Time) time.Duration {
	var pause time.Duration
	switch n {
	case batchChanged:
		pause = batchStatusInterval
	case countersChanged:
		pause = counterStatusInterval
	default:
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, pause-now.Sub(r.lastStatusWrite[istio]))
}

// needsUserAction tells whether workloads do not move until a user acts.
func needsUserAction(condition *metav1.Condition) bool {
	switch v1.Reason(condition.Reason) {
	case v1.ReasonPaused, v1.ReasonMaxVersionExceeded, v1.ReasonInvalidSettings, v1.ReasonNotRevisionBased, v1.ReasonMigrationDisabled,
		v1.ReasonInjectionNotChecked:
		return condition.Status == metav1.ConditionFalse
	}
	return false
}
