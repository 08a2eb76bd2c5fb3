package template

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// releaseBinding releases the dependencies of a template. Then its binding is deleted, to restore the originals of its objects with
// the annotation for that; or only the claim of the policy is removed, and the objects stay in their clusters.
func (d *Reconciler) releaseBinding(ctx context.Context, have *model.Binding, decision Decision) error {
	if _, err := d.applyDependencies(ctx, have, nil, decision.Action == model.ActionRestore); err != nil {
		return err
	}
	switch {
	case decision.Action == model.ActionRestore:
		return d.deleteAnnotated(ctx, have, model.AnnotationRestore)
	case decision.Preserve:
		return d.deleteAnnotated(ctx, have, model.AnnotationReleased)
	case decision.Action == model.ActionOrphan:
		released := have.Copy()
		model.Claim(released, model.PolicyKey{})
		return d.client.Update(ctx, released.Object, client.FieldOwner(model.FieldOwner))
	}
	return d.deleteBinding(ctx, have)
}

// deleteAnnotated deletes a binding with an annotation that says what becomes of its objects.
func (d *Reconciler) deleteAnnotated(ctx context.Context, have *model.Binding, annotation string) error {
	if have.GetAnnotations()[annotation] != "true" {
		have = have.Copy()
		have.SetAnnotations(model.MergeKeys(have.GetAnnotations(), nil, map[string]string{annotation: "true"}))
		if err := d.client.Update(ctx, have.Object, client.FieldOwner(model.FieldOwner)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return d.deleteBinding(ctx, have)
}

// deleteBinding deletes a binding, and none that was created again under its name.
func (d *Reconciler) deleteBinding(ctx context.Context, have *model.Binding) error {
	uid := have.GetUID()
	return client.IgnoreNotFound(d.client.Delete(ctx, have.Object, client.Preconditions{UID: &uid}))
}

// applyClaimed writes the bindings of a template that a policy takes, and of its dependencies.
func (d *Reconciler) applyClaimed(ctx context.Context, key model.TemplateKey, t model.Template, uid types.UID, p *policy.Policy, have *model.Binding) (reconcile.Result, error) {
	var clusters clusterv1alpha1.ClusterList
	if err := d.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Clusters: %w", err)
	}
	var template *unstructured.Unstructured
	if NeedsContent(p) {
		template = &unstructured.Unstructured{}
		template.SetGroupVersionKind(key.Kind)
		if err := d.templates.Get(ctx, key.ObjectKey, template); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	content, err := ContentOf(template, p)
	if err != nil {
		return reconcile.Result{}, err
	}
	bound, err := d.applyBinding(ctx, t, uid, p, policy.MembersOf(clusters.Items), content, have)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// The template goes with its namespace.
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	var needed []model.TemplateKey
	switch refused := len(p.UnsupportedFields()) > 0; {
	case !refused && bound.Spec.PropagateDeps:
		// Those of the policy that is in force.
		needed = manifest.Dependencies(template)
	case refused:
		// Its dependencies stay as they are, too.
		dependencies, err := model.ListDependencies(ctx, d.client, bound)
		if err != nil {
			return reconcile.Result{}, err
		}
		for _, b := range dependencies {
			needed = append(needed, model.TemplateKeyOf(b))
		}
	}
	retry, err := d.applyDependencies(ctx, bound, needed, false)
	if err != nil {
		return reconcile.Result{}, err
	}
	if have != nil && have.GetResourceVersion() == bound.GetResourceVersion() {
		d.enqueueBinding(client.ObjectKeyFromObject(bound.Object))
	}
	if retry {
		return reconcile.Result{RequeueAfter: policy.KindRetryInterval}, nil
	}
	return reconcile.Result{}, nil
}

// applyBinding writes the binding of a resource, if it says anything new.
func (d *Reconciler) applyBinding(ctx context.Context, t model.Template, uid types.UID, p *policy.Policy, members []policy.Member, content Content, have *model.Binding) (*model.Binding, error) {
	before := have
	if have == nil {
		var err error
		if before, err = d.formerBinding(ctx, t, uid); err != nil {
			return nil, err
		}
	}
	want, err := DesiredBinding(t, uid, p, members, content, before)
	if err != nil {
		return nil, err
	}
	switch {
	case have == nil:
		if before == nil {
			if err := d.setName(ctx, t.Key(), want); err != nil {
				return nil, err
			}
		}
		return want, d.client.Create(ctx, want.Object, client.FieldOwner(model.FieldOwner))
	case equality.Semantic.DeepEqual(have.Spec, want.Spec) && equality.Semantic.DeepEqual(have.GetAnnotations(), want.GetAnnotations()) &&
		slices.Equal(have.GetFinalizers(), want.GetFinalizers()):
		return have, nil
	}
	note := policy.RemovedNote(have, want)
	if err := d.client.Update(ctx, want.Object, client.FieldOwner(model.FieldOwner)); err != nil || note == "" {
		return want, err
	}
	d.recorder.Eventf(want.Object, nil, corev1.EventTypeWarning, "FieldsRemoved", "Propagate", "%s", note)
	return want, nil
}

// formerBinding is the binding that the Works of a template are from, under the name that they tell; nil if there are none.
func (d *Reconciler) formerBinding(ctx context.Context, t model.Template, uid types.UID) (*model.Binding, error) {
	for _, binding := range t.Key().Bindings() {
		works, err := model.ListWorks(ctx, d.client, model.BindingPath(binding))
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(works, func(_ string, work *workv1alpha1.Work) bool { return isOfOtherTemplate(work, t) })
		if former := FormerBinding(t, uid, works); former != nil {
			former.SetName(binding.Name)
			return former, nil
		}
	}
	return nil, nil
}

// isOfOtherTemplate tells whether a Work has the object of another template.
func isOfOtherTemplate(work *workv1alpha1.Work, t model.Template) bool {
	key, err := model.TemplateKeyOfWork(work)
	return err == nil && key.ID() != t.Key().ID()
}

// setName names a binding that is created as no binding of another template is named.
func (d *Reconciler) setName(ctx context.Context, key model.TemplateKey, b *model.Binding) error {
	var failed error
	b.SetName(key.NewBinding(func(name client.ObjectKey) bool {
		other, err := model.GetBinding(ctx, d.client, name)
		failed = err
		return other != nil && model.TemplateKeyOf(other).ID() != key.ID()
	}).Name)
	return failed
}
