package template

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// Observed is a template, its binding and the policies of the hub.
type Observed struct {
	Template model.Template
	// Exists is false if the template is gone, or being deleted.
	Exists bool
	// Policies are read if the template exists, or has a binding.
	Policies []*policy.Policy
	// Binding is nil if there is none.
	Binding *model.Binding
	// NamespaceDeleted holds when the namespace of the template is being deleted. It is read only if DependsOnNamespace.
	NamespaceDeleted bool
}

// Version is the resourceVersion of a template, empty if its kind is not watched.
func (d *Reconciler) Version(ctx context.Context, key model.TemplateKey) string {
	if !d.Kinds.isWatched(key.Kind) {
		return ""
	}
	metadata := model.NewMetadata(key.Kind)
	if err := d.metadata.Get(ctx, key.ObjectKey, metadata); err != nil {
		return ""
	}
	return metadata.ResourceVersion
}

// templatesOf are the templates of the kinds that a policy selects, and those that it has claimed. A list that fails is logged:
// event handlers have no way to retry.
func (d *Reconciler) templatesOf(ctx context.Context, policy *policy.Policy) (all []model.TemplateKey) {
	log := ctrl.LoggerFrom(ctx).WithValues("policy", policy.Key().String())
	taken, err := model.ListClaimed(ctx, d.client, policy.Key())
	if err != nil {
		log.Error(err, "list the templates of a policy")
		return nil
	}
	for _, b := range taken {
		all = append(all, model.TemplateKeyOf(b))
	}
	for _, kind := range policy.FollowedKinds() {
		if d.Kinds.watchKind(ctx, kind) != nil || !d.Kinds.isStarted(kind) {
			// The kind is retried, and its error is reported on the policy; or it is watched when its turn comes.
			continue
		}
		informer, err := d.metadata.GetInformer(ctx, model.NewMetadata(kind), cache.BlockUntilSynced(false))
		if err != nil || !informer.HasSynced() {
			// The informer enqueues all templates of the kind when it has synced.
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := d.metadata.List(ctx, list, client.InNamespace(policy.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			log.Error(err, "list the templates of a policy", "kind", kind.Kind)
		}
		for i := range list.Items {
			all = append(all, model.TemplateKey{Kind: kind, ObjectKey: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return all
}
