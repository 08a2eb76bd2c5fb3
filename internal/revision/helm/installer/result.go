package installer

import (
	"errors"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

const (
	// usageRetryInterval is how often it is worth looking whether it can be told again who uses something.
	usageRetryInterval = 5 * time.Second
	// ConflictRequeueDelay lets the cache see what somebody else has just written.
	ConflictRequeueDelay = 100 * time.Millisecond
	// ownershipRetryInterval is how often it is worth looking whether somebody else has given up what they hold.
	ownershipRetryInterval = 15 * time.Second
)

// Result is when to look again at what a plan has left, and whether an error is worth trying again. To look again is not
// to try again: of what was refused, it finds other charts, or that enough time has passed.
func Result(plan passage.Plan, failure error, askAgain time.Duration) (ctrl.Result, error) {
	switch {
	case errors.As(failure, new(*release.OwnedByOthersError)):
		return ctrl.Result{RequeueAfter: ownershipRetryInterval}, nil
	case release.Refused(failure) && slices.ContainsFunc(plan.Steps, isRestore):
		// Nothing is recorded of it that would keep another look from being another try.
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
		case v1.ReasonVersionNotFound, v1.ReasonChartsUnavailable, v1.ReasonRefused:
			return ctrl.Result{RequeueAfter: askAgain}, nil
		}
	}
	return ctrl.Result{}, nil
}

// RequeueUnknownUsage is a result for what nobody knows the users of: that this has changed is not told by an event.
func RequeueUnknownUsage(result ctrl.Result) ctrl.Result {
	if result.RequeueAfter == 0 || result.RequeueAfter > usageRetryInterval {
		result.RequeueAfter = usageRetryInterval
	}
	return result
}

func isRestore(step passage.Step) bool { return step.Action == ActionRestore }
