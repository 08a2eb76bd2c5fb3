package adoption

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
)

// FinalizerExecution keeps a Work until what it has made in its cluster is gone, or released.
const FinalizerExecution = "karmada.io/execution-controller"

// parting is what becomes of an object whose Work goes.
type parting string

const (
	// remove it.
	remove parting = "delete"
	// leaveBe lets it stay, without the marks.
	leaveBe parting = "release"
	// putBack makes it again what it was before it was taken over.
	putBack parting = "put back"
	// keep it as it is: somebody has deleted no more than the Work, and there will be another one.
	keepOn parting = "keep"
)

// partingFor is what becomes of the object of a Work that goes. A cluster that leaves the hub keeps what it runs, unless
// somebody asks for the opposite.
func partingFor(work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster, binding *binding) parting {
	switch {
	case work.Annotations[AnnotationUndo] == "true":
		return putBack
	case work.Annotations[AnnotationKeep] == "true":
		return keepOn
	case cluster.DeletionTimestamp == nil && wants(binding, work, cluster.Name):
		return keepOn
	case cluster.DeletionTimestamp != nil && cluster.Annotations[AnnotationDeleteResources] != "true":
		return leaveBe
	case ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false):
		return leaveBe
	}
	return remove
}

// wants holds for a binding that is to have a Work in a cluster.
func wants(binding *binding, work *workv1alpha1.Work, cluster string) bool {
	return binding != nil && binding.GetDeletionTimestamp() == nil && taken(binding) && string(binding.GetUID()) == work.Labels[LabelBinding] &&
		slices.ContainsFunc(targets(binding), func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
}

// release lets go of what a Work has made.
func (e *executor) release(ctx context.Context, m *member, work *workv1alpha1.Work, how parting) error {
	if !controllerutil.ContainsFinalizer(work, FinalizerExecution) {
		return nil
	}
	for i, raw := range work.Spec.Workload.Manifests {
		manifest := &unstructured.Unstructured{}
		if err := manifest.UnmarshalJSON(raw.Raw); err != nil {
			return fmt.Errorf("read manifest %d of Work %s/%s: %w", i, work.Namespace, work.Name, err)
		}
		live, err := m.find(ctx, manifest)
		if err != nil && !meta.IsNoMatchError(err) {
			return err
		}
		if live == nil || live.GetDeletionTimestamp() != nil || identityOf(e.hub, live).of(live) != ours {
			continue
		}
		if err := e.part(ctx, m, work, i, live, how); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("%s %s %s in cluster %s: %w", how, live.GetKind(), nameOf(live), m.name, err)
		}
		memberWrites.WithLabelValues(m.name, string(how)).Inc()
		ctrl.LoggerFrom(ctx).Info("applied a step", "action", how, "cluster", m.name, "object", live.GetKind()+" "+nameOf(live),
			"reason", "Released: the hub no longer manages it")
	}
	if err := e.undo.forget(ctx, work); err != nil {
		return err
	}
	return e.finish(ctx, work)
}

func (e *executor) part(ctx context.Context, m *member, work *workv1alpha1.Work, i int, live *unstructured.Unstructured, how parting) error {
	if how == remove {
		uid, version := live.GetUID(), live.GetResourceVersion()
		return m.client.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid, ResourceVersion: &version})
	}
	if how == putBack {
		earlier, err := e.undo.earlier(ctx, work, i)
		if err != nil {
			return err
		}
		// One that was made anew in the meantime is not the one that was taken over.
		if earlier != nil && earlier.GetUID() == live.GetUID() {
			scaled, err := m.scaled(ctx, live, earlier)
			if err != nil {
				return err
			}
			err = m.client.Update(ctx, restored(earlier, live, scaled), client.FieldOwner(FieldOwner))
			if !apierrors.IsInvalid(err) {
				return err
			}
			ctrl.LoggerFrom(ctx).Error(err, "an object cannot become what it was, and stays as it is", "cluster", m.name, "object", live.GetKind()+" "+nameOf(live))
		}
	}
	before := live.DeepCopy()
	live.SetLabels(joined(live.GetLabels(), markKeys))
	return m.client.Patch(ctx, live, client.MergeFrom(before), client.FieldOwner(FieldOwner))
}

// finish lets a Work go.
func (e *executor) finish(ctx context.Context, work *workv1alpha1.Work) error {
	e.contests.forget(work.UID)
	before := work.DeepCopy()
	controllerutil.RemoveFinalizer(work, FinalizerExecution)
	return client.IgnoreNotFound(e.client.Patch(ctx, work, client.MergeFrom(before), client.FieldOwner(FieldOwner)))
}
