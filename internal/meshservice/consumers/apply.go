package consumers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/meshstatus"
)

// apply writes the slices that differ, and then the status of the Mesh, which counts what the slices record. A process that
// dies in between leaves slices that the next decision starts from.
func (r *reconciler) apply(ctx context.Context, mesh *kumav1alpha1.Mesh, recorded []fairleadv1alpha1.MeshConsumerSlice, d Decision, now time.Time,
) (changed bool, err error) {
	if d.Condition == nil {
		return false, nil
	}
	changed, err = r.applySlices(ctx, mesh.Name, recorded, d.Record)
	if err != nil {
		return changed, err
	}
	condition := *d.Condition
	condition.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	written, err := r.report(ctx, mesh, condition, d.Record)
	return changed || written, err
}

// report writes the status, which counts what the slices record.
func (r *reconciler) report(ctx context.Context, mesh *kumav1alpha1.Mesh, condition metav1.Condition, record *kumav1alpha1.MeshMigration) (written bool, err error) {
	defer kube.Span(&ctx, kube.StageReport)()
	return meshstatus.Apply(ctx, r.client, mesh, meshstatus.Consumers, condition, func(status *kumav1alpha1.MeshStatus) {
		status.Migration = withoutConsumers(record)
	})
}

func withoutConsumers(record *kumav1alpha1.MeshMigration) *kumav1alpha1.MeshMigration {
	if record == nil {
		return nil
	}
	header := *record
	header.Consumers = nil
	return &header
}

// applySlices writes the slices of a record that differ, each with the resourceVersion that was observed.
func (r *reconciler) applySlices(ctx context.Context, mesh string, recorded []fairleadv1alpha1.MeshConsumerSlice, record *kumav1alpha1.MeshMigration,
) (changed bool, err error) {
	defer kube.Span(&ctx, kube.StageApply)()
	for _, w := range sliceWrites(mesh, recorded, record) {
		switch w.action {
		case createSlice:
			err = r.client.Create(ctx, w.slice, client.FieldOwner(meshstatus.Consumers))
		case updateSlice:
			err = r.client.Update(ctx, w.slice, client.FieldOwner(meshstatus.Consumers))
		default:
			err = r.deleteSlice(ctx, w.slice)
		}
		if err != nil {
			return changed, fmt.Errorf("record the consumers of Mesh %s in MeshConsumerSlice %s: %w", mesh, w.slice.Name, err)
		}
		changed = true
	}
	return changed, nil
}

// deleteSlice deletes the observed version of a slice.
func (r *reconciler) deleteSlice(ctx context.Context, slice *fairleadv1alpha1.MeshConsumerSlice) error {
	uid, version := slice.UID, slice.ResourceVersion
	err := r.client.Delete(ctx, slice, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete MeshConsumerSlice %s: %w", slice.Name, err)
	}
	return nil
}

// moveRecord moves the consumers of a Mesh whose status has them, as earlier versions recorded them: it writes the slices, and
// when the publisher knows all of them, the status without the consumers. The publisher gets the events of both in any order,
// and would switch consumers back if it had the status first.
func (r *reconciler) moveRecord(ctx context.Context, mesh *kumav1alpha1.Mesh, recorded []fairleadv1alpha1.MeshConsumerSlice, now time.Time) error {
	changed, err := r.applySlices(ctx, mesh.Name, recorded, mesh.Status.Migration)
	if changed || err != nil || !isPublished(mesh, r.options.Recorded) {
		return err
	}
	_, err = r.apply(ctx, mesh, recorded, movedRecord(mesh), now)
	return err
}

// isPublished says whether all that publish know the switched consumers of the status from slices. Without any nothing has to.
func isPublished(mesh *kumav1alpha1.Mesh, recorded func(mesh string, switched map[string]bool) bool) bool {
	return recorded == nil || recorded(mesh.Name, Switched(mesh))
}

// movedRecord is the decision for a Mesh whose slices have the consumers of its status: nothing but to write the status without
// them.
func movedRecord(mesh *kumav1alpha1.Mesh) Decision {
	condition := meta.FindStatusCondition(mesh.Status.Conditions, kumav1alpha1.ConditionConsumersSwitched)
	return Decision{Record: mesh.Status.Migration, Condition: cmp.Or(condition, &metav1.Condition{
		Type: kumav1alpha1.ConditionConsumersSwitched, Status: metav1.ConditionFalse, Reason: kumav1alpha1.ReasonSwitching,
		Message: "the record of switched consumers is moved to MeshConsumerSlices",
	})}
}

// forgetAfter is how long the slices of a deleted Mesh are kept: a Mesh that is created again has its switched consumers.
const forgetAfter = time.Hour

// absentMeshes are the deleted Meshes that have slices, and since when this process knows.
type absentMeshes map[string]time.Time

// remaining is how long the slices of a deleted Mesh are still kept.
func (a absentMeshes) remaining(mesh string, now time.Time) time.Duration {
	since, known := a[mesh]
	if !known {
		since, a[mesh] = now, now
	}
	return max(since.Add(forgetAfter).Sub(now), 0)
}

// forgetAbsent deletes the slices of a Mesh that has been deleted for long enough.
func (r *reconciler) forgetAbsent(ctx context.Context, mesh string, now time.Time) (requeueAfter time.Duration, err error) {
	recorded, err := listSlices(ctx, r.client, mesh)
	if err != nil || len(recorded) == 0 {
		delete(r.absent, mesh)
		return 0, err
	}
	if left := r.absent.remaining(mesh, now); left > 0 {
		return left, nil
	}
	for i := range recorded {
		if err := r.deleteSlice(ctx, &recorded[i]); err != nil {
			return 0, err
		}
	}
	delete(r.absent, mesh)
	return 0, nil
}
