package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// report writes the status if it has changed.
func (r *reconciler) report(ctx context.Context, o Observed, plan passage.Plan, failure error) error {
	status := statusOf(o, plan, failure, r.Now())
	return installer.Report(ctx, r.Tools, o.Revision, o.Revision.Status, status, o.Revision.Status.Conditions, status.Conditions)
}

func statusOf(o Observed, plan passage.Plan, failure error, now time.Time) v1.IstioRevisionStatus {
	status := *o.Revision.Status.DeepCopy()
	status.ObservedGeneration = o.Revision.Generation
	reconciled := installer.Reconciled(plan, failure, fmt.Sprintf("the charts of %s are installed", o.Revision.Spec.Version))
	// Also of releases that were installed before charts were recorded.
	for _, installed := range []installer.Release{o.Base, o.Validator, o.Istiod} {
		if installed.Installed() {
			status.Charts = installer.RecordChart(status.Charts, installed.Chart)
		}
	}
	ready := ready(o, reconciled)
	status.State = installer.StateOf(reconciled, ready)
	kube.SetConditions(&status.Conditions, o.Revision.Generation, now, reconciled, ready, o.Usage.Condition())
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

// recordChart writes the chart of a release into the status before anything is installed from it.
func (r *reconciler) recordChart(ctx context.Context, o Observed, of installer.Release) error {
	status := *o.Revision.Status.DeepCopy()
	status.Charts = installer.RecordChart(status.Charts, of.Chart)
	if slices.Equal(status.Charts, o.Revision.Status.Charts) {
		return nil
	}
	kind := v1.GroupVersion.WithKind(v1.IstioRevisionKind)
	if err := kube.ApplyStatus(ctx, r.Client, kind, o.Revision, status, v1.FieldOwner); err != nil {
		return err
	}
	o.Revision.Status = status
	return nil
}

func (r *reconciler) recordEvent(o Observed, step passage.Step) { r.RecordStep(o.Revision, step) }
