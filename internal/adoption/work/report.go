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

// reportUnreachable tells on a Work that has something to write that it cannot.
func (e *reconciler) reportUnreachable(ctx context.Context, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) error {
	condition := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	pending := condition == nil || condition.ObservedGeneration < work.Generation
	if !pending || ready == nil || ready.Status != metav1.ConditionFalse || !work.DeletionTimestamp.IsZero() {
		return nil
	}
	status := *work.Status.DeepCopy()
	e.setCondition(work, &status, metav1.ConditionFalse, passage.Because(model.ReasonUnreachable, "it waits until cluster %s can be reached: %s", cluster.Name, ready.Message))
	return e.writeStatus(ctx, work, status)
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

func (e *reconciler) setCondition(work *workv1alpha1.Work, status *workv1alpha1.WorkStatus, is metav1.ConditionStatus, reason passage.Reason) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha1.ConditionApplied, Status: is, Reason: string(reason.Code), Message: reason.Message,
		ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(e.now()),
	})
}

func (e *reconciler) writeStatus(ctx context.Context, work *workv1alpha1.Work, status workv1alpha1.WorkStatus) error {
	if equality.Semantic.DeepEqual(work.Status, status) {
		return nil
	}
	before := work.DeepCopy()
	work.Status = status
	err := e.client.Status().Patch(ctx, work, client.MergeFrom(before), client.FieldOwner(model.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	if err == nil {
		e.freshness.recordWrite(work)
	}
	return nil
}
