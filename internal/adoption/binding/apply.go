package binding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// applyWorks makes the Works what they should be, and returns them. The first error is what the template says that means
// nothing.
func (b *reconciler) applyWorks(ctx context.Context, binding *model.Binding, works map[string]*workv1alpha1.Work) (_ map[string]*workv1alpha1.Work, wrong, err error) {
	key := model.TemplateKeyOf(binding)
	version := b.version(ctx, key)
	if wrong, found := b.written.lookup(binding, version, works); found {
		return works, wrong, nil
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(key.Kind)
	if err := b.templates.Get(ctx, key.ObjectKey, template); err != nil {
		// The detector hears of it when it is gone.
		return works, nil, client.IgnoreNotFound(err)
	}
	all, wrong, err := PlanTargets(binding, template)
	if err != nil {
		return works, wrong, err
	}
	wanted, unwanted := map[string]*workv1alpha1.Work{}, maps.Clone(works)
	var errs []error
	for _, s := range all {
		delete(unwanted, s.Cluster)
		work, err := b.applyWork(ctx, binding, s.Cluster, s.Manifest, works[s.Cluster])
		if member.IsTooLarge(err) {
			return works, wrong, &workTooLargeError{s.Cluster, err}
		}
		errs = append(errs, err)
		wanted[s.Cluster] = work
	}
	for _, work := range unwanted {
		last := deletionPolicy{preserve: IsPreserved(binding, work)}
		errs = append(errs, b.deleteWorks(ctx, last, map[string]*workv1alpha1.Work{"": work}))
	}
	if err := errors.Join(errs...); err != nil {
		return works, wrong, err
	}
	if template.GetResourceVersion() == version {
		b.written.store(binding, version, wanted, wrong)
	}
	return wanted, wrong, nil
}

// applyWork makes one Work what it should be.
func (b *reconciler) applyWork(ctx context.Context, binding *model.Binding, cluster string, manifest *unstructured.Unstructured, have *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	if have != nil && !have.DeletionTimestamp.IsZero() {
		return have, nil
	}
	text, err := json.Marshal(manifest.Object)
	if err != nil {
		return nil, fmt.Errorf("describe %s %s: %w", manifest.GetKind(), model.NameOf(manifest), err)
	}
	spec := workv1alpha1.WorkSpec{
		Workload:                    workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: text}}}},
		PreserveResourcesOnDeletion: binding.Spec.PreserveResourcesOnDeletion,
	}
	if s := binding.Spec.Suspension; s != nil {
		spec.SuspendDispatching = s.Dispatching
	}
	labels := map[string]string{model.LabelBinding: string(binding.GetUID()), model.LabelWork: model.ObjectID(manifest)}
	annotations := map[string]string{model.AnnotationBinding: binding.Path(), model.AnnotationClaim: model.ClaimOf(binding).String()}
	if have == nil {
		work := &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: model.ExecutionNamespace(cluster), Name: model.WorkName(model.TemplateOfBinding(binding)),
				Labels: labels, Annotations: annotations, Finalizers: []string{model.FinalizerExecution},
			},
			Spec: spec,
		}
		err := b.client.Create(ctx, work, client.FieldOwner(model.FieldOwner))
		if !apierrors.IsAlreadyExists(err) {
			return work, err
		}
		// The cache has yet to hear of it, or it was made for a binding that is no more.
		have = &workv1alpha1.Work{}
		if err := b.templates.Get(ctx, client.ObjectKeyFromObject(work), have); err != nil {
			return nil, err
		}
	}
	work := have.DeepCopy()
	work.Spec, work.Labels, work.Annotations = spec, model.MergeKeys(have.Labels, nil, labels), model.MergeKeys(have.Annotations, nil, annotations)
	if equalSpecs(have.Spec, spec) && maps.Equal(have.Labels, work.Labels) && maps.Equal(have.Annotations, work.Annotations) {
		return have, nil
	}
	return work, b.client.Update(ctx, work, client.FieldOwner(model.FieldOwner))
}

// equalSpecs compares what manifests say, however they are written.
func equalSpecs(a, b workv1alpha1.WorkSpec) bool {
	parsed := func(s workv1alpha1.WorkSpec) []any {
		var all []any
		for _, m := range s.Workload.Manifests {
			var object any
			_ = json.Unmarshal(m.Raw, &object)
			all = append(all, object)
		}
		return all
	}
	return equality.Semantic.DeepEqual(parsed(a), parsed(b)) && equality.Semantic.DeepEqual(a.SuspendDispatching, b.SuspendDispatching) &&
		equality.Semantic.DeepEqual(a.PreserveResourcesOnDeletion, b.PreserveResourcesOnDeletion)
}
