package template

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// applyDependencies has all that a resource needs go where it goes, and nothing else any more because of it.
func (d *Reconciler) applyDependencies(ctx context.Context, by *model.Binding, needed []model.TemplateKey, undo bool) error {
	wanted := map[client.ObjectKey]bool{}
	for _, key := range needed {
		if err := d.Kinds.watchKind(ctx, key.Kind); err != nil {
			continue
		}
		name := client.ObjectKey{Namespace: key.Namespace, Name: model.BindingName(key.Kind, key.Name)}
		wanted[name] = true
		if err := d.addDependency(ctx, by, key, name); err != nil {
			return err
		}
	}
	lent, err := model.ListDependencies(ctx, d.client, by)
	if err != nil {
		return err
	}
	for _, b := range lent {
		if wanted[client.ObjectKeyFromObject(b.Object)] {
			continue
		}
		if err := d.removeDependency(ctx, by, b.Copy(), undo); err != nil {
			return err
		}
	}
	return nil
}

// addDependency has a resource go where another one needs it. One that is not on the hub has to be in the clusters already.
func (d *Reconciler) addDependency(ctx context.Context, by *model.Binding, key model.TemplateKey, name client.ObjectKey) error {
	seen := model.NewMetadata(key.Kind)
	if err := d.metadata.Get(ctx, key.ObjectKey, seen); err != nil || seen.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	if policy.IsClusterLocal(key.Template(seen)) {
		return nil
	}
	have, err := model.GetBinding(ctx, d.client, name.Namespace, name.Name)
	if err != nil {
		return err
	}
	snapshot := workv1alpha2.BindingSnapshot{Namespace: by.GetNamespace(), Name: by.GetName()}
	for _, c := range by.Spec.Clusters {
		snapshot.Clusters = append(snapshot.Clusters, workv1alpha2.TargetCluster{Name: c.Name})
	}
	if have == nil {
		b := model.NewBinding(name.Namespace, name.Name)
		controllerutil.AddFinalizer(b.Object, model.FinalizerBinding)
		r := key.Template(seen)
		*b.Spec = workv1alpha2.ResourceBindingSpec{
			Resource:           workv1alpha2.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: seen.UID},
			ConflictResolution: by.Spec.ConflictResolution, Suspension: by.Spec.Suspension, RequiredBy: []workv1alpha2.BindingSnapshot{snapshot},
			// Somebody else in the cluster may need it too.
			PreserveResourcesOnDeletion: ptr.To(true),
		}
		return d.client.Create(ctx, b.Object, client.FieldOwner(model.FieldOwner))
	}
	if have.GetDeletionTimestamp() != nil {
		return nil
	}
	want := have.Copy()
	want.Spec.RequiredBy = append(model.WithoutDependent(want.Spec.RequiredBy, by), snapshot)
	slices.SortFunc(want.Spec.RequiredBy, func(a, b workv1alpha2.BindingSnapshot) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	if model.ClaimOf(have) == (model.PolicyKey{}) {
		if err := d.mergeResolutions(ctx, by, want); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(have.Spec, want.Spec) {
		return nil
	}
	return d.client.Update(ctx, want.Object, client.FieldOwner(model.FieldOwner))
}

// mergeResolutions takes over what is there already only if all that need it do, and writes nothing as long as one of them is suspended.
func (d *Reconciler) mergeResolutions(ctx context.Context, by, want *model.Binding) error {
	want.Spec.ConflictResolution, want.Spec.Suspension = by.Spec.ConflictResolution, by.Spec.Suspension
	for _, r := range want.Spec.RequiredBy {
		if r.Namespace == by.GetNamespace() && r.Name == by.GetName() {
			continue
		}
		other, err := model.GetBinding(ctx, d.client, r.Namespace, r.Name)
		if err != nil {
			return err
		}
		if other == nil {
			continue
		}
		if other.Spec.ConflictResolution != policyv1alpha1.ConflictOverwrite {
			want.Spec.ConflictResolution = policyv1alpha1.ConflictAbort
		}
		if s := other.Spec.Suspension; s != nil && ptr.Deref(s.Dispatching, false) {
			want.Spec.Suspension = s
		}
	}
	return nil
}

// removeDependency ends that a resource goes where another one needed it.
func (d *Reconciler) removeDependency(ctx context.Context, by, lent *model.Binding, undo bool) error {
	if lent.GetDeletionTimestamp() != nil {
		return nil
	}
	others := model.WithoutDependent(lent.Spec.RequiredBy, by)
	if len(others) > 0 || model.ClaimOf(lent) != (model.PolicyKey{}) {
		lent.Spec.RequiredBy = others
		return client.IgnoreNotFound(d.client.Update(ctx, lent.Object, client.FieldOwner(model.FieldOwner)))
	}
	if undo {
		return d.undoBinding(ctx, lent)
	}
	if lent.GetAnnotations()[model.AnnotationReleased] != "true" {
		lent.SetAnnotations(model.MergeKeys(lent.GetAnnotations(), nil, map[string]string{model.AnnotationReleased: "true"}))
		if err := d.client.Update(ctx, lent.Object, client.FieldOwner(model.FieldOwner)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(d.client.Delete(ctx, lent.Object))
}
