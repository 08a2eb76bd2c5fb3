package leftover

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
)

const (
	// pageSize is how many objects are listed in one request.
	pageSize = 500
	// maxPages is how many pages of a kind are read, and maxCandidates how many objects of a cluster are looked at, in one search. What a
	// cluster lists has no end if it does not want it to have one.
	maxPages, maxCandidates = 2_000, 10_000
)

// listMarked appends the objects of a kind with the label of the hub that are candidates. A kind that the hub may not read has none of
// its objects.
func listMarked(ctx context.Context, m *member.Client, kind schema.GroupVersionKind, hub string, all []metav1.PartialObjectMetadata,
	isCandidate func(*metav1.PartialObjectMetadata) bool,
) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	for range maxPages {
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := m.API.List(ctx, list, client.MatchingLabels{model.LabelManaged: "true", model.LabelHub: hub}, client.Limit(pageSize), client.Continue(list.Continue))
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), meta.IsNoMatchError(err):
			return all, nil
		case err != nil:
			return all, fmt.Errorf("list %s in cluster %s: %w", kind.Kind, m.Name, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			o.SetGroupVersionKind(kind)
			if !isCandidate(o) {
				continue
			}
			if len(all) == maxCandidates {
				return all, nil
			}
			all = append(all, metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}})
		}
		if list.Continue == "" {
			return all, nil
		}
	}
	return all, nil
}

// findCandidates are the objects of a cluster with the labels of this hub of which its cache has no Work.
func (r *reconciler) findCandidates(ctx context.Context, m *member.Client) ([]metav1.PartialObjectMetadata, error) {
	kinds, err := r.kindsOf(m)
	if err != nil {
		return nil, err
	}
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.InNamespace(model.ExecutionNamespace(m.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Works of cluster %s: %w", m.Name, err)
	}
	known := map[string]bool{}
	for i := range works.Items {
		known[works.Items[i].Labels[model.LabelWork]] = true
	}
	var all []metav1.PartialObjectMetadata
	var errs []error
	for _, kind := range kinds {
		all, err = listMarked(ctx, m, kind, r.hub, all, func(o *metav1.PartialObjectMetadata) bool {
			return !known[o.Labels[model.LabelWork]] && isManaged(o, r.hub)
		})
		errs = append(errs, err)
		if err != nil && !member.IsUserError(err) {
			// The connection fails, and each further kind would take as long to time out.
			break
		}
	}
	return all, errors.Join(errs...)
}

// isManaged tells whether the labels of an object are those of a hub, and not copied from another object.
func isManaged(o *metav1.PartialObjectMetadata, hub string) bool {
	id := model.Digest(o.GroupVersionKind().Group, o.Kind, o.Namespace, o.Name)
	return model.Identity{Hub: hub, Object: id}.OwnershipOf(o) == model.ManagedHere
}

// observe reads a candidate, and then its Work and its binding, once more from the API servers: an object whose Work has just gone
// is no longer labelled.
func (r *reconciler) observe(ctx context.Context, m *member.Client, c *clusterv1alpha1.Cluster, candidate *metav1.PartialObjectMetadata) (Observed, error) {
	kind := candidate.GroupVersionKind()
	err := m.API.Get(ctx, client.ObjectKeyFromObject(candidate), candidate)
	candidate.SetGroupVersionKind(kind)
	if err != nil {
		return Observed{Cluster: c}, client.IgnoreNotFound(err)
	}
	o := Observed{Cluster: c, Protected: model.IsProtectedKind(kind.GroupKind()), Managed: isManaged(candidate, r.hub) && candidate.DeletionTimestamp == nil}
	t := model.TemplateOf(candidate)
	work, err := kube.GetIfExists(ctx, r.reader, client.ObjectKey{Namespace: model.ExecutionNamespace(c.Name), Name: model.WorkName(t)}, &workv1alpha1.Work{})
	if err != nil {
		return o, err
	}
	o.HasWork = work != nil
	// The cache has indexes, the API server none.
	cached, err := model.FindBinding(ctx, r.client, t.Key())
	if err != nil {
		return o, err
	}
	binding := t.Key().Binding()
	if cached != nil {
		binding.Name = cached.GetName()
	}
	o.Binding, err = model.GetBinding(ctx, r.reader, binding)
	if o.Binding != nil && model.TemplateKeyOf(o.Binding).ID() != t.Key().ID() {
		o.Binding = nil
	}
	return o, err
}
