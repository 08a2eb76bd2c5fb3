package template

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// applyDependencies has the needed templates go to the clusters of by, and releases those that by no longer needs. It has to be
// called again if it is unknown of a needed template whether it exists.
func (d *Reconciler) applyDependencies(ctx context.Context, by *model.Binding, needed []model.TemplateKey, release passage.Action) (unknown bool, err error) {
	wanted := map[client.ObjectKey]bool{}
	for _, key := range needed {
		wanted[key.Binding()] = true
		if err := d.Kinds.watchKind(ctx, key.Kind); err != nil {
			// Its binding, if any, stays.
			unknown = true
			continue
		}
		if err := d.addDependency(ctx, by, key); err != nil {
			return unknown, err
		}
	}
	dependency, err := model.ListDependencies(ctx, d.client, by)
	if err != nil {
		return unknown, err
	}
	for _, b := range dependency {
		if wanted[client.ObjectKeyFromObject(b.Object)] {
			continue
		}
		if err := d.removeDependency(ctx, by, b.Copy(), release); err != nil {
			return unknown, err
		}
	}
	return unknown, nil
}

// addDependency has a template go where another one requires it. One that is not on the hub has to be in the clusters already.
func (d *Reconciler) addDependency(ctx context.Context, by *model.Binding, key model.TemplateKey) error {
	metadata := model.NewMetadata(key.Kind)
	if err := d.metadata.Get(ctx, key.ObjectKey, metadata); err != nil || metadata.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	t := model.TemplateOf(metadata)
	if policy.IsClusterLocal(t) {
		return nil
	}
	have, err := model.GetBinding(ctx, d.client, key.Binding())
	if err != nil {
		return err
	}
	if have == nil {
		b := WithDependents(NewDependency(t, metadata.UID), nil, by)
		return d.client.Create(ctx, b.Object, client.FieldOwner(model.FieldOwner))
	}
	if have.GetDeletionTimestamp() != nil {
		return nil
	}
	others := map[client.ObjectKey]*model.Binding{}
	for _, r := range have.Spec.RequiredBy {
		key := client.ObjectKey{Namespace: r.Namespace, Name: r.Name}
		if others[key], err = model.GetBinding(ctx, d.client, key); err != nil {
			return err
		}
	}
	want := WithDependents(have, func(key client.ObjectKey) *model.Binding { return others[key] }, by)
	if equality.Semantic.DeepEqual(have.Spec, want.Spec) {
		return nil
	}
	return d.client.Update(ctx, want.Object, client.FieldOwner(model.FieldOwner))
}

// removeDependency removes the clusters of by from the binding of a template that by no longer requires. The objects there are
// orphaned or restored.
func (d *Reconciler) removeDependency(ctx context.Context, by, dependency *model.Binding, release passage.Action) error {
	if dependency.GetDeletionTimestamp() != nil {
		return nil
	}
	want := WithoutDependent(dependency, by, release)
	switch {
	case model.IsTaken(want):
		return client.IgnoreNotFound(d.client.Update(ctx, want.Object, client.FieldOwner(model.FieldOwner)))
	case release == model.ActionRestore:
		return d.releaseBinding(ctx, dependency, model.ActionRestore)
	}
	return d.deleteAnnotated(ctx, dependency, model.AnnotationReleased)
}
