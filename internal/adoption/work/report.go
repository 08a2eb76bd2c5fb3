package work

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// reportHold reports why nothing is written to the member. That a cluster cannot be reached concerns only a Work that has
// something to write.
func (r *reconciler) reportHold(ctx context.Context, o Observed, hold passage.Reason) error {
	if hold.Code == model.ReasonLeaving {
		return nil
	}
	if hold.Code == model.ReasonUnreachable {
		condition := meta.FindStatusCondition(o.Work.Status.Conditions, workv1alpha1.ConditionApplied)
		applied := condition != nil && condition.ObservedGeneration >= o.Work.Generation
		if applied || !o.Work.DeletionTimestamp.IsZero() || !meta.IsStatusConditionFalse(o.Cluster.Status.Conditions, clusterv1alpha1.ConditionReady) {
			return nil
		}
	}
	status := *o.Work.Status.DeepCopy()
	r.setCondition(o.Work, &status, metav1.ConditionFalse, hold)
	return r.writeStatus(ctx, o.Work, status)
}

func manifestStatus(i int, live *unstructured.Unstructured, written Record) *workv1alpha1.ManifestStatus {
	kind := live.GroupVersionKind()
	s := &workv1alpha1.ManifestStatus{
		Identifier: workv1alpha1.ResourceIdentifier{
			Ordinal: i, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: live.GetNamespace(), Name: live.GetName(),
		},
		Health: string(healthOf(live)), WrittenManifest: written.Manifest, WrittenObject: written.Object,
	}
	if said, found := live.Object["status"]; found {
		if text, err := json.Marshal(said); err == nil {
			s.Status = &runtime.RawExtension{Raw: text}
		}
	}
	return s
}

func (r *reconciler) setCondition(work *workv1alpha1.Work, status *workv1alpha1.WorkStatus, is metav1.ConditionStatus, reason passage.Reason) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha1.ConditionApplied, Status: is, Reason: string(reason.Code), Message: reason.Message,
		ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(r.now()),
	})
}

func (r *reconciler) writeStatus(ctx context.Context, work *workv1alpha1.Work, status workv1alpha1.WorkStatus) error {
	if equality.Semantic.DeepEqual(work.Status, status) {
		return nil
	}
	before := work.DeepCopy()
	work.Status = status
	err := r.client.Status().Patch(ctx, work, client.MergeFrom(before), client.FieldOwner(model.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	if err == nil {
		r.freshness.recordWrite(work)
	}
	return nil
}
