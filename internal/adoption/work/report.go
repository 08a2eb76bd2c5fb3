package work

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// HeldStatus is the status of a Work with a hold, nil if it stays as it is: a cluster that is leaving is reported on the Cluster,
// one that cannot be reached only to Works that have something to write, and a template that has changed only if the Work does not
// follow.
func HeldStatus(o Observed, hold passage.Reason, now time.Time) *workv1alpha1.WorkStatus {
	switch hold.Code {
	case model.ReasonLeaving:
		return nil
	case model.ReasonTemplateChanged:
		if o.Binding == nil || model.IsTaken(o.Binding) {
			return nil
		}
	case model.ReasonUnreachable:
		condition := meta.FindStatusCondition(o.Work.Status.Conditions, workv1alpha1.ConditionApplied)
		applied := condition != nil && condition.ObservedGeneration >= o.Work.Generation
		if applied || !o.Work.DeletionTimestamp.IsZero() || !meta.IsStatusConditionFalse(o.Cluster.Status.Conditions, clusterv1alpha1.ConditionReady) {
			return nil
		}
	}
	status := WithApplied(o.Work, metav1.ConditionFalse, hold, now)
	return &status
}

// isReported tells whether the binding of a Work says of its cluster what the Work says, if it goes there. ReasonNotApplied is the
// binding's own: its Works are not what it wants them to be.
func isReported(work *workv1alpha1.Work, cluster string, binding *model.Binding) bool {
	if !work.DeletionTimestamp.IsZero() || binding == nil || !model.HasCluster(model.Targets(binding), cluster) {
		return true
	}
	said := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	for _, item := range binding.Status.AggregatedStatus {
		if item.ClusterName == cluster && said != nil {
			applied := said.Status == metav1.ConditionTrue
			return passage.Code(item.Reason) == model.ReasonNotApplied || item.Applied == applied && (applied || item.Reason == said.Reason)
		}
	}
	return false
}

// WithApplied is the status of a Work with another condition Applied.
func WithApplied(work *workv1alpha1.Work, is metav1.ConditionStatus, reason passage.Reason, now time.Time) workv1alpha1.WorkStatus {
	status := *work.Status.DeepCopy()
	model.SetCondition(&status.Conditions, workv1alpha1.ConditionApplied, is, reason, work.Generation, now)
	return status
}

// AppliedStatus is the status of a Work whose objects are applied.
func AppliedStatus(work *workv1alpha1.Work, cluster string, statuses []workv1alpha1.ManifestStatus, now time.Time) workv1alpha1.WorkStatus {
	status := WithApplied(work, metav1.ConditionTrue, passage.Because(model.ReasonApplied, "applied in cluster %s", cluster), now)
	status.ManifestStatuses = statuses
	return status
}

// StepStatus is the status of a manifest after its action, with the live object as the member has it now: nil only for one that has
// finished and is removed.
func StepStatus(work *workv1alpha1.Work, object Object, action passage.Action) *workv1alpha1.ManifestStatus {
	live := object.Live
	if live == nil {
		return finishedStatus(work, object)
	}
	written := recordOf(work, object.Ordinal)
	if action != model.ActionNone {
		written = newRecord(object.Manifest, live)
	}
	kind := live.GroupVersionKind()
	return &workv1alpha1.ManifestStatus{
		Identifier: workv1alpha1.ResourceIdentifier{
			Ordinal: object.Ordinal, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: live.GetNamespace(), Name: live.GetName(),
		},
		Health: string(healthOf(live)), WrittenManifest: written.Manifest, WrittenObject: written.Object,
		Status: rawStatus(live),
	}
}

func (r *reconciler) writeStatus(ctx context.Context, work *workv1alpha1.Work, status workv1alpha1.WorkStatus) error {
	defer kube.Span(&ctx, kube.StageReport)()
	if equality.Semantic.DeepEqual(work.Status, status) {
		return nil
	}
	kind := workv1alpha1.GroupVersion.WithKind(workv1alpha1.WorkKind)
	err := kube.ApplyStatusPart(ctx, r.client, kind, work, status, status, model.FieldOwner)
	if apierrors.IsConflict(err) {
		err = r.retryStatus(ctx, work, status, err)
	}
	if err == nil {
		work.Status = status
		r.freshness.recordWrite(work, r.now())
	}
	return client.IgnoreNotFound(err)
}

// retryStatus writes the status once more after a conflict, if the Work is otherwise the one that was reconciled: only the status
// remembers what was written to the member.
func (r *reconciler) retryStatus(ctx context.Context, work *workv1alpha1.Work, status workv1alpha1.WorkStatus, conflict error) error {
	var live workv1alpha1.Work
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(work), &live); err != nil {
		return err
	}
	if live.UID != work.UID || live.Generation != work.Generation {
		return conflict
	}
	work.ResourceVersion = live.ResourceVersion
	return kube.ApplyStatusPart(ctx, r.client, workv1alpha1.GroupVersion.WithKind(workv1alpha1.WorkKind), work, status, status, model.FieldOwner)
}
