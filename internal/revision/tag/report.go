package tag

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
	if equality.Semantic.DeepEqual(o.Tag.Status, status) {
		return nil
	}
	err := kube.ApplyStatus(ctx, r.client, v1.GroupVersion.WithKind(v1.IstioRevisionTagKind), o.Tag, status, v1.FieldOwner)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	installer.RecordFailure(ctx, r.recorder, o.Tag, o.Tag.Status.Conditions, status.Conditions)
	return nil
}

func statusOf(o Observed, plan passage.Plan, failure error, now time.Time) v1.IstioRevisionTagStatus {
	status := *o.Tag.Status.DeepCopy()
	status.ObservedGeneration = o.Tag.Generation
	if to := o.pointsTo(); to != nil && o.Release.Installed() {
		status.IstioRevision, status.IstiodNamespace = to.Name, to.Spec.Namespace
	}
	if whileNameIsTaken(o) != nil && len(o.Strays) == 0 {
		status.IstioRevision, status.IstiodNamespace = "", ""
	}
	conditions := []metav1.Condition{
		installer.Reconciled(plan, failure, fmt.Sprintf("the tag points to IstioRevision %s", plan.Target)),
		inUse(o),
	}
	status.State = v1.StateHealthy
	for _, condition := range conditions {
		if condition.Status != metav1.ConditionTrue && status.State == v1.StateHealthy {
			status.State = v1.State(condition.Reason)
		}
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = o.Tag.Generation
		condition.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

func inUse(o Observed) metav1.Condition {
	status, reason, message := o.Usage.Condition()
	return metav1.Condition{Type: string(v1.ConditionInUse), Status: status, Reason: string(reason), Message: message}
}
