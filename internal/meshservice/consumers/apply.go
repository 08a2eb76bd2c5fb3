package consumers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// apply patches the record and the condition, and nothing else of the status. The optimistic lock rejects the patch if the Mesh
// has changed since it was observed.
func (r *reconciler) apply(ctx context.Context, mesh *kumav1alpha1.Mesh, d Decision, now time.Time) (changed bool, err error) {
	before := mesh.DeepCopy()
	mesh.Status.Migration = d.Record
	if d.Condition != nil {
		d.Condition.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		meta.SetStatusCondition(&mesh.Status.Conditions, *d.Condition)
	}
	if equality.Semantic.DeepEqual(before.Status, mesh.Status) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, mesh, patch, client.FieldOwner(fieldOwner)); err != nil {
		return false, fmt.Errorf("patch the status of Mesh %s: %w", mesh.Name, err)
	}
	return true, nil
}

// fieldOwner is the field manager of the passage.
const fieldOwner = "fairlead/meshservice"
