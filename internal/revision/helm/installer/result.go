package installer

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

const (
	// usageRetryInterval is how often to check whether usage is known again.
	usageRetryInterval = 5 * time.Second
	// ownershipRetryInterval is how often to check whether another owner has released an object.
	ownershipRetryInterval = 15 * time.Second
)

// Result is when to requeue after a plan, and whether an error is retried. A requeue is not an attempt: a refused release is
// only attempted again with other charts, or after its interval.
func Result(plan passage.Plan, failure error, askAgain time.Duration) (ctrl.Result, error) {
	switch {
	case errors.As(failure, new(*release.OwnedByOthersError)):
		return ctrl.Result{RequeueAfter: ownershipRetryInterval}, nil
	case release.Refused(failure) && slices.ContainsFunc(plan.Steps, isRestore):
		// No record of the attempt exists that would keep a requeue from being an attempt.
		return ctrl.Result{RequeueAfter: RefusedRetryInterval}, nil
	case release.Refused(failure):
		return ctrl.Result{RequeueAfter: askAgain}, nil
	case errors.As(failure, new(*release.RenderError)):
		return ctrl.Result{}, reconcile.TerminalError(failure)
	case failure != nil:
		return ctrl.Result{}, failure
	}
	for _, step := range plan.Steps {
		switch v1.Reason(step.Reason.Code) {
		case v1.ReasonVersionNotFound, v1.ReasonChartsUnavailable, v1.ReasonChartChanged, v1.ReasonChartNotVerified,
			v1.ReasonRefused:
			return ctrl.Result{RequeueAfter: askAgain}, nil
		}
	}
	return ctrl.Result{}, nil
}

// requeueUnknownUsage requeues while usage is unknown: no event reports the end of that.
func requeueUnknownUsage(result ctrl.Result) ctrl.Result {
	if result.RequeueAfter == 0 || result.RequeueAfter > usageRetryInterval {
		result.RequeueAfter = usageRetryInterval
	}
	return result
}

func isRestore(step passage.Step) bool { return step.Action == ActionRestore }

// StatusError is the result after a failed status write: a conflict is requeued, and is no error.
func StatusError(failure, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	}
	return ctrl.Result{}, errors.Join(failure, err)
}

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
