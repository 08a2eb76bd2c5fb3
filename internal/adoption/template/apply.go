package template

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// deleteBinding deletes the binding of a template that is gone.
func (d *Reconciler) deleteBinding(ctx context.Context, have *model.Binding) error {
	if err := d.applyDependencies(ctx, have, nil, false); err != nil {
		return err
	}
	return client.IgnoreNotFound(d.client.Delete(ctx, have.Object))
}

// releaseBinding removes the claim of a policy that no longer takes the template. Its objects stay in their clusters.
func (d *Reconciler) releaseBinding(ctx context.Context, have *model.Binding) error {
	if err := d.applyDependencies(ctx, have, nil, false); err != nil {
		return err
	}
	released := have.Copy()
	model.Claim(released, model.PolicyKey{})
	return d.client.Update(ctx, released.Object, client.FieldOwner(model.FieldOwner))
}

// restoreOriginals deletes a binding with the annotation by which the originals of its objects are restored.
func (d *Reconciler) restoreOriginals(ctx context.Context, have *model.Binding) error {
	if err := d.applyDependencies(ctx, have, nil, true); err != nil {
		return err
	}
	return d.deleteAnnotated(ctx, have, model.AnnotationRestore)
}

// deleteAnnotated deletes a binding with an annotation that says what becomes of its objects.
func (d *Reconciler) deleteAnnotated(ctx context.Context, have *model.Binding, annotation string) error {
	if have.GetAnnotations()[annotation] != "true" {
		have = withAnnotation(have, annotation)
		if err := d.client.Update(ctx, have.Object, client.FieldOwner(model.FieldOwner)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(d.client.Delete(ctx, have.Object))
}

// applyClaimed writes the bindings of a template that a policy takes, and of its dependencies.
func (d *Reconciler) applyClaimed(ctx context.Context, key model.TemplateKey, t model.Template, uid types.UID, policy *policy.Policy, have *model.Binding) error {
	members, err := ListMembers(ctx, d.client)
	if err != nil {
		return err
	}
	divided := policy.Spec.Placement.Divides()
	var template *unstructured.Unstructured
	if divided || policy.Spec.PropagateDeps {
		template = &unstructured.Unstructured{}
		template.SetGroupVersionKind(key.Kind)
		if err := d.templates.Get(ctx, key.ObjectKey, template); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	replicas := int32(-1)
	if divided {
		replicas = manifest.Replicas(template)
	}
	bound, err := d.applyBinding(ctx, t, uid, policy, members, replicas, have)
	if err != nil {
		return err
	}
	var needed []model.TemplateKey
	if policy.Spec.PropagateDeps {
		if needed, err = manifest.Dependencies(template); err != nil {
			return err
		}
	}
	if err := d.applyDependencies(ctx, bound, needed, false); err != nil {
		return err
	}
	if have != nil && have.GetResourceVersion() == bound.GetResourceVersion() {
		d.enqueueBinding(client.ObjectKeyFromObject(bound.Object))
	}
	return nil
}

// applyBinding writes the binding of a resource, if it says anything new.
func (d *Reconciler) applyBinding(ctx context.Context, t model.Template, uid types.UID, policy *policy.Policy, members []policy.Member, replicas int32, have *model.Binding) (*model.Binding, error) {
	want, err := DesiredBinding(t, uid, policy, members, replicas, have)
	if err != nil {
		return nil, err
	}
	switch {
	case have == nil:
		return want, d.client.Create(ctx, want.Object, client.FieldOwner(model.FieldOwner))
	case equality.Semantic.DeepEqual(have.Spec, want.Spec) && equality.Semantic.DeepEqual(have.GetAnnotations(), want.GetAnnotations()):
		return have, nil
	}
	return want, d.client.Update(ctx, want.Object, client.FieldOwner(model.FieldOwner))
}
