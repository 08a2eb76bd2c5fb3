package binding

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
)

// Observed is a binding, its template and its Works.
type Observed struct {
	Binding *model.Binding
	// Template is nil if it is gone, or being deleted, by itself or with its namespace. Of a binding that is being deleted only its existence matters, so its content
	// is not read.
	Template *unstructured.Unstructured
	// Works are by cluster.
	Works map[string]*workv1alpha1.Work
}

// getTemplate reads a template, or as much of it as into holds. It tells whether the template exists, and is not being deleted. The API
// server may answer from its cache as long as that has the version that the operator has seen; without a version, from its store.
func (r *reconciler) getTemplate(ctx context.Context, key model.TemplateKey, seen string, into client.Object) (bool, error) {
	defer kube.Span(&ctx, kube.StageObserve)()
	into.GetObjectKind().SetGroupVersionKind(key.Kind)
	err := r.reader.Get(ctx, key.ObjectKey, into, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: seen}})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get %s %s: %w", key.Kind.Kind, key.ObjectKey, err)
	}
	return err == nil && into.GetDeletionTimestamp() == nil, nil
}

// isTemplateKept tells whether the template of a binding that is being deleted, or gone, exists, and stays. In a namespace that is
// being deleted none does, even if the binding goes first.
func (r *reconciler) isTemplateKept(ctx context.Context, key model.TemplateKey) (bool, error) {
	exists, err := r.getTemplate(ctx, key, "", &metav1.PartialObjectMetadata{})
	if err != nil || !exists {
		return false, err
	}
	deleted, err := model.IsNamespaceDeleted(ctx, r.reader, key.Namespace)
	return !deleted, err
}

// ownerOf is the binding that a Work was made for, nil if it is gone.
func (r *reconciler) ownerOf(ctx context.Context, work *workv1alpha1.Work) (*model.Binding, error) {
	for _, request := range model.BindingRequests(ctx, work) {
		owner, err := model.GetBinding(ctx, r.reader, request.NamespacedName)
		if err != nil {
			return nil, fmt.Errorf("get the binding of Work %s/%s: %w", work.Namespace, work.Name, err)
		}
		if owner != nil && string(owner.GetUID()) == work.Labels[model.LabelBinding] {
			return owner, nil
		}
	}
	return nil, nil
}

// refreshFinished reads the binding of a Job or Pod from the API server before a Work is created. The cache may have received the
// deletion of a Work before the status that records that its object has finished, and the object would run again. It costs one read
// for each reconcile until the Work exists.
func (r *reconciler) refreshFinished(ctx context.Context, o *Observed) error {
	lacksWork := slices.ContainsFunc(model.Targets(o.Binding), func(target workv1alpha2.TargetCluster) bool { return o.Works[target.Name] == nil })
	if !manifest.RunsOnce(o.Template) || !lacksWork {
		return nil
	}
	live, err := model.GetBinding(ctx, r.reader, client.ObjectKeyFromObject(o.Binding.Object))
	if err != nil {
		return fmt.Errorf("get the status of binding %s: %w", o.Binding.Path(), err)
	}
	if live == nil || live.GetUID() != o.Binding.GetUID() || live.GetDeletionTimestamp() != nil {
		kind := schema.GroupResource{Group: workv1alpha2.GroupVersion.Group, Resource: "resourcebindings"}
		return apierrors.NewConflict(kind, o.Binding.Path(), errors.New("it has been deleted, and the cache has not received that"))
	}
	o.Binding = live
	return nil
}
