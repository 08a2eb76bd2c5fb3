package controlplane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// report writes the status if it has changed.
func (r *reconciler) report(ctx context.Context, o Observed, plan passage.Plan, failure error) error {
	status := statusOf(o, plan, failure, r.now())
	if equality.Semantic.DeepEqual(o.Revision.Status, status) {
		return nil
	}
	err := kube.ApplyStatus(ctx, r.client, v1.GroupVersion.WithKind(v1.IstioRevisionKind), o.Revision, status, v1.FieldOwner)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	installer.RecordFailure(ctx, r.recorder, o.Revision, o.Revision.Status.Conditions, status.Conditions)
	return nil
}

func statusOf(o Observed, plan passage.Plan, failure error, now time.Time) v1.IstioRevisionStatus {
	status := *o.Revision.Status.DeepCopy()
	status.ObservedGeneration = o.Revision.Generation
	reconciled := installer.Reconciled(plan, failure, fmt.Sprintf("the charts of %s are installed", o.Revision.Spec.Version))
	conditions := []metav1.Condition{reconciled, ready(o, reconciled), inUse(o)}
	status.State = v1.StateHealthy
	for _, condition := range conditions[:2] {
		if condition.Status != metav1.ConditionTrue && status.State == v1.StateHealthy {
			status.State = v1.State(condition.Reason)
		}
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = o.Revision.Generation
		condition.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

func ready(o Observed, reconciled metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: string(v1.ConditionReady), Status: metav1.ConditionFalse}
	serves, why := serving(o)
	switch {
	case o.beingDeleted():
		why = passage.Because(v1.ReasonBeingDeleted, "the control plane is being removed")
	case !o.Istiod.State.Exists:
		why = passage.Because(v1.ReasonIstiodNotReady, "istiod is not installed; the condition Reconciled says why")
	case reconciled.Status != metav1.ConditionTrue && !o.Istiod.IsUpToDate(o.reported()):
		// The installed istiod differs from the spec.
		why = passage.Because(v1.ReasonIstiodNotReady, "istiod is not as the spec asks; the condition Reconciled says why")
	case o.DeploymentsErr != nil:
		condition.Status = metav1.ConditionUnknown
	case serves:
		condition.Status = metav1.ConditionTrue
	}
	condition.Reason, condition.Message = string(why.Code), why.Message
	return condition
}

func inUse(o Observed) metav1.Condition {
	status, reason, message := o.Usage.Condition()
	return metav1.Condition{Type: string(v1.ConditionInUse), Status: status, Reason: string(reason), Message: message}
}
