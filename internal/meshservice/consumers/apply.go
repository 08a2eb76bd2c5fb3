package consumers

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/meshstatus"
)

// apply applies the record and the condition, unless there was no intent. A Mesh that has changed since it was observed is a
// conflict: the decision may be outdated.
func (r *reconciler) apply(ctx context.Context, mesh *kumav1alpha1.Mesh, d Decision, now time.Time) (changed bool, err error) {
	if d.Condition == nil {
		return false, nil
	}
	condition := *d.Condition
	condition.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	return meshstatus.Apply(ctx, r.client, mesh, meshstatus.Consumers, condition, func(status *kumav1alpha1.MeshStatus) {
		status.Migration = d.Record
	})
}
