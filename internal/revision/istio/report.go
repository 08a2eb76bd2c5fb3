package istio

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// report writes the status if it has changed.
func (r *reconciler) report(ctx context.Context, o Observed, plan passage.Plan, failure error) error {
	defer kube.Span(&ctx, kube.StageReport)()
	status := ownStatus(statusOf(o, plan, failure, r.Now()))
	return installer.Report(ctx, r.Tools, o.Istio, ownStatus(o.Istio.Status), status, o.Istio.Status.Conditions, status.Conditions)
}

// statusOf is the status as it should read after a plan, and after the failure of applying it, if there was one.
func statusOf(o Observed, plan passage.Plan, failure error, now time.Time) v1.IstioStatus {
	status := *o.Istio.Status.DeepCopy()
	status.ObservedGeneration = o.Istio.Generation
	status.ActiveRevisionName = activeRevision(o, plan)
	status.Revisions = summary(o.own())

	reconciled, ready := reconciled(plan, failure), ready(o, status.ActiveRevisionName)
	status.State = installer.StateOf(reconciled, ready)
	kube.SetConditions(&status.Conditions, o.Istio.Generation, now, reconciled, ready)
	setResolvedRefs(&status.Conditions, o.Unresolved, func(condition metav1.Condition) {
		kube.SetConditions(&status.Conditions, o.Istio.Generation, now, condition)
	})
	return status
}

// activeRevision is the one that the Istio asks for, once it is there; until then it stays what it was.
func activeRevision(o Observed, plan passage.Plan) string {
	for _, name := range []string{plan.Target, o.Istio.Status.ActiveRevisionName} {
		if o.owns(name) {
			return name
		}
	}
	return ""
}

func summary(own []Revision) *v1.RevisionSummary {
	sum := &v1.RevisionSummary{Total: int32(len(own))}
	for _, r := range own {
		if revisionReadiness(r.IstioRevision).ready {
			sum.Ready++
		}
		if meta.IsStatusConditionTrue(r.Status.Conditions, string(v1.ConditionInUse)) {
			sum.InUse++
		}
	}
	return sum
}

func reconciled(plan passage.Plan, failure error) metav1.Condition {
	done := fmt.Sprintf("IstioRevision %s is as the spec asks%s", plan.Target, describeKept(plan))
	plan.Steps = slices.DeleteFunc(slices.Clone(plan.Steps), func(step passage.Step) bool {
		switch step.Action {
		case ActionRun, ActionMove, ActionRetire, ActionPrune, ActionDelete: // which are not about the active revision's spec
			return true
		}
		return false
	})
	condition := installer.Reconciled(plan, failure, done)
	if failure != nil {
		reason := failureReason(failure)
		condition.Reason, condition.Message = string(reason.Code), reason.Message
	}
	return condition
}

// failureReason quotes the API server only where its message is stable: a status that changes with each attempt would be
// written with each attempt.
func failureReason(err error) passage.Reason {
	switch {
	case apierrors.IsInvalid(err):
		return passage.Because(v1.ReasonRefused, "%v; retried every 5 minutes, and at once when the spec changes", err)
	case apierrors.IsForbidden(err):
		return passage.Because(v1.ReasonReconcileError, "%v", err)
	}
	return passage.Because(v1.ReasonReconcileError, "writing the revision failed (%s) and will be tried again; details are in the operator's log",
		installer.ServerReason(err))
}

func ready(o Observed, active string) metav1.Condition {
	condition := metav1.Condition{Type: string(v1.ConditionReady), Status: metav1.ConditionFalse}
	revision := o.revision(active)
	if revision == nil {
		condition.Reason = string(v1.ReasonActiveRevisionNotFound)
		condition.Message = "no IstioRevision has been written for this Istio; the condition Reconciled says why"
		return condition
	}
	readiness := revisionReadiness(revision.IstioRevision)
	switch {
	case readiness.ready:
		condition.Status = metav1.ConditionTrue
	case readiness.reason == v1.ReasonReadinessCheckFailed:
		condition.Status = metav1.ConditionUnknown
	}
	condition.Reason, condition.Message = string(readiness.reason), readiness.message
	return condition
}

// ownStatus is the part of a status that this controller has: that of workloads is another one's.
func ownStatus(status v1.IstioStatus) v1.IstioStatus {
	own := v1.IstioStatus{
		ObservedGeneration: status.ObservedGeneration,
		State:              status.State,
		ActiveRevisionName: status.ActiveRevisionName,
		Revisions:          status.Revisions,
	}
	for _, condition := range status.Conditions {
		switch v1.ConditionType(condition.Type) {
		case v1.ConditionReconciled, v1.ConditionReady, v1.ConditionResolvedRefs:
			own.Conditions = append(own.Conditions, condition)
		}
	}
	return own
}
