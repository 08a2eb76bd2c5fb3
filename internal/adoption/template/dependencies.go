package template

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// applyDependencies has the needed templates go to the clusters of by, and releases those that by no longer needs. With retry, it
// has to be called again after a while: a needed template cannot be read, or its former binding is still being deleted.
func (d *Reconciler) applyDependencies(ctx context.Context, by *model.Binding, needed []model.TemplateKey, restore bool) (retry bool, err error) {
	wanted := map[string]bool{}
	for _, key := range needed {
		wanted[key.ID()] = true
		if err := d.Kinds.watchKind(ctx, key.Kind); err != nil {
			// Whether the dependency exists is unknown: its binding, if any, stays.
			retry = true
			continue
		}
		deleting, err := d.addDependency(ctx, by, key)
		if err != nil {
			return false, err
		}
		retry = retry || deleting
	}
	dependency, err := model.ListDependencies(ctx, d.client, by)
	if err != nil {
		return false, err
	}
	for _, b := range dependency {
		if wanted[model.TemplateKeyOf(b).ID()] {
			continue
		}
		if err := d.removeDependency(ctx, by, b.Copy(), restore); err != nil {
			return false, err
		}
	}
	return retry, nil
}

// addDependency has a template go where another one requires it, unless its binding is being deleted. A template that is not on
// the hub has to be in the clusters already.
func (d *Reconciler) addDependency(ctx context.Context, by *model.Binding, key model.TemplateKey) (deleting bool, err error) {
	metadata := model.NewMetadata(key.Kind)
	if err := d.metadata.Get(ctx, key.ObjectKey, metadata); err != nil || metadata.DeletionTimestamp != nil {
		return false, client.IgnoreNotFound(err)
	}
	t := model.TemplateOf(metadata)
	if policy.IsExcluded(t) {
		return false, nil
	}
	have, err := model.FindBinding(ctx, d.client, key)
	if err != nil {
		return false, err
	}
	if have == nil {
		b := WithDependents(NewDependency(t, metadata.UID), nil, by)
		if err := d.setName(ctx, key, b); err != nil {
			return false, err
		}
		err := d.client.Create(ctx, b.Object, client.FieldOwner(model.FieldOwner))
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return false, nil
		}
		return false, err
	}
	if have.GetDeletionTimestamp() != nil {
		return true, nil
	}
	others, err := d.dependents(ctx, have)
	if err != nil {
		return false, err
	}
	want := WithDependents(have, others, by)
	model.AddFinalizer(want.Object, model.FinalizerBinding)
	if equality.Semantic.DeepEqual(have.Spec, want.Spec) && slices.Equal(have.GetFinalizers(), want.GetFinalizers()) {
		return false, nil
	}
	return false, d.client.Update(ctx, want.Object, client.FieldOwner(model.FieldOwner))
}

// dependents finds the bindings of the templates that require that of a binding, nil for one that is gone.
func (d *Reconciler) dependents(ctx context.Context, dependency *model.Binding) (func(client.ObjectKey) *model.Binding, error) {
	all := map[client.ObjectKey]*model.Binding{}
	for _, r := range dependency.Spec.RequiredBy {
		key := client.ObjectKey{Namespace: r.Namespace, Name: r.Name}
		b, err := model.GetBinding(ctx, d.client, key)
		if err != nil {
			return nil, err
		}
		all[key] = b
	}
	return func(key client.ObjectKey) *model.Binding { return all[key] }, nil
}

// removeDependency removes the clusters of by from the binding of a template that by no longer requires. The objects there are
// orphaned, or their originals restored.
func (d *Reconciler) removeDependency(ctx context.Context, by, dependency *model.Binding, restore bool) error {
	if dependency.GetDeletionTimestamp() != nil {
		return nil
	}
	others, err := d.dependents(ctx, dependency)
	if err != nil {
		return err
	}
	want := WithoutDependent(dependency, others, by, restore)
	switch {
	case IsKept(want):
		return client.IgnoreNotFound(d.client.Update(ctx, want.Object, client.FieldOwner(model.FieldOwner)))
	case restore:
		return d.releaseBinding(ctx, dependency, Decision{Action: model.ActionRestore})
	}
	return d.deleteAnnotated(ctx, dependency, model.AnnotationReleased)
}
