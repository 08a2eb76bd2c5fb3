package work

import (
	"context"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// deletionActionOf is what becomes of the object of a Work, if that is going.
func (e *reconciler) deletionActionOf(ctx context.Context, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) (DeletionAction, error) {
	if work.DeletionTimestamp.IsZero() {
		return "", nil
	}
	var binding *model.Binding
	for _, key := range model.BindingRequests(ctx, work) {
		var err error
		if binding, err = model.GetBinding(ctx, e.client, key.Namespace, key.Name); err != nil {
			return "", err
		}
	}
	return DeletionActionFor(work, cluster, binding), nil
}

// RecordOf is what was last written of a manifest.
func RecordOf(work *workv1alpha1.Work, i int) Record {
	for _, s := range work.Status.ManifestStatuses {
		if s.Identifier.Ordinal == i {
			return Record{s.WrittenManifest, s.WrittenObject}
		}
	}
	return Record{}
}
