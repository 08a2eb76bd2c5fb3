package work

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// DeletionAction is what becomes of an object whose Work goes.
type DeletionAction string

const (
	// Delete it.
	Delete DeletionAction = "delete"
	// Orphan lets it stay, without the marks.
	Orphan DeletionAction = "release"
	// Restore makes it again what it was before it was taken over.
	Restore DeletionAction = "put back"
	// keep it as it is: somebody has deleted no more than the Work, and there will be another one.
	Keep DeletionAction = "keep"
)

// DeletionActionFor is what becomes of the object of a Work that goes. A cluster that leaves the hub keeps what it runs, unless
// somebody asks for the opposite.
func DeletionActionFor(work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster, binding *model.Binding) DeletionAction {
	switch {
	case work.Annotations[model.AnnotationUndo] == "true":
		return Restore
	case work.Annotations[model.AnnotationKeep] == "true":
		return Keep
	case cluster.DeletionTimestamp == nil && isWanted(binding, work, cluster.Name):
		return Keep
	case cluster.DeletionTimestamp != nil && cluster.Annotations[model.AnnotationDeleteResources] != "true":
		return Orphan
	case ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false):
		return Orphan
	}
	return Delete
}

// isWanted holds for a binding that is to have a Work in a cluster.
func isWanted(binding *model.Binding, work *workv1alpha1.Work, cluster string) bool {
	return binding != nil && binding.GetDeletionTimestamp() == nil && model.IsTaken(binding) && string(binding.GetUID()) == work.Labels[model.LabelBinding] &&
		slices.ContainsFunc(model.Targets(binding), func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
}

// releaseObjects lets go of what a Work has made.
func (e *reconciler) releaseObjects(ctx context.Context, m *member.Client, work *workv1alpha1.Work, how DeletionAction) error {
	if !controllerutil.ContainsFinalizer(work, model.FinalizerExecution) {
		return nil
	}
	for i, raw := range work.Spec.Workload.Manifests {
		manifest := &unstructured.Unstructured{}
		if err := manifest.UnmarshalJSON(raw.Raw); err != nil {
			return fmt.Errorf("read manifest %d of Work %s/%s: %w", i, work.Namespace, work.Name, err)
		}
		live, err := m.Get(ctx, manifest)
		if err != nil && !meta.IsNoMatchError(err) {
			return err
		}
		if live == nil || live.GetDeletionTimestamp() != nil || model.IdentityOf(e.hub, live).OwnershipOf(live) != model.ManagedHere {
			continue
		}
		if err := e.applyDeletion(ctx, m, work, i, live, how); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("%s %s %s in cluster %s: %w", how, live.GetKind(), model.NameOf(live), m.Name, err)
		}
		member.Writes.WithLabelValues(m.Name, string(how)).Inc()
		ctrl.LoggerFrom(ctx).Info("applied a step", "action", how, "cluster", m.Name, "object", live.GetKind()+" "+model.NameOf(live),
			"reason", "Released: the hub no longer manages it")
	}
	if err := e.originals.delete(ctx, work); err != nil {
		return err
	}
	return e.removeFinalizer(ctx, work)
}

func (e *reconciler) applyDeletion(ctx context.Context, m *member.Client, work *workv1alpha1.Work, i int, live *unstructured.Unstructured, how DeletionAction) error {
	if how == Delete {
		uid, version := live.GetUID(), live.GetResourceVersion()
		return m.API.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid, ResourceVersion: &version})
	}
	if how == Restore {
		earlier, err := e.originals.load(ctx, work, i)
		if err != nil {
			return err
		}
		// One that was made anew in the meantime is not the one that was taken over.
		if earlier != nil && earlier.GetUID() == live.GetUID() {
			scaled, err := m.IsAutoscaled(ctx, live, earlier)
			if err != nil {
				return err
			}
			err = m.API.Update(ctx, restoredObject(earlier, live, scaled), client.FieldOwner(model.FieldOwner))
			if !apierrors.IsInvalid(err) {
				return err
			}
			ctrl.LoggerFrom(ctx).Error(err, "an object cannot become what it was, and stays as it is", "cluster", m.Name, "object", live.GetKind()+" "+model.NameOf(live))
		}
	}
	before := live.DeepCopy()
	live.SetLabels(model.MergeKeys(live.GetLabels(), model.OwnershipLabels))
	return m.API.Patch(ctx, live, client.MergeFrom(before), client.FieldOwner(model.FieldOwner))
}

// removeFinalizer lets a Work go.
func (e *reconciler) removeFinalizer(ctx context.Context, work *workv1alpha1.Work) error {
	e.driftLimiter.forget(work.UID)
	before := work.DeepCopy()
	controllerutil.RemoveFinalizer(work, model.FinalizerExecution)
	return client.IgnoreNotFound(e.client.Patch(ctx, work, client.MergeFrom(before), client.FieldOwner(model.FieldOwner)))
}
