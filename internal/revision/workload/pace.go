package workload

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// news is how much a status says that the one before it did not.
type news uint8

const (
	nothing news = iota
	// counters is that workloads have ended.
	counters
	// boundary is that a batch has ended or begun.
	boundary
	// turned is what nobody should have to wait for.
	turned
)

func newsIn(before, now *v1.WorkloadMigrationStatus) news {
	switch {
	case equality.Semantic.DeepEqual(before, now):
		return nothing
	case before == nil || now == nil || before.State != now.State || before.TargetRevision != now.TargetRevision ||
		before.FailedWorkloads != now.FailedWorkloads:
		return turned
	case !equality.Semantic.DeepEqual(before.Batched, now.Batched):
		return boundary
	}
	return counters
}

// wait is how long news have to wait, so that a thousand workloads do not cost a thousand writes.
func (r *reconciler) wait(istio string, n news, now time.Time) time.Duration {
	var pause time.Duration
	switch n {
	case boundary:
		pause = boundaryPause
	case counters:
		pause = counterPause
	default:
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, pause-now.Sub(r.written[istio]))
}

// needsPeople tells whether a condition speaks of what keeps workloads from being moved until somebody does something.
func needsPeople(condition *metav1.Condition) bool {
	switch v1.Reason(condition.Reason) {
	case v1.ReasonPaused, v1.ReasonMaxVersionExceeded, v1.ReasonInvalidSettings, v1.ReasonNotRevisionBased, v1.ReasonMigrationDisabled:
		return condition.Status == metav1.ConditionFalse
	}
	return false
}
