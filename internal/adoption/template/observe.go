package template

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// Observed is a template, its binding and the policies of the hub.
type Observed struct {
	Template model.Template
	// Exists is false if the template is gone, or being deleted. Then no policies are read.
	Exists   bool
	Policies []*policy.Policy
	// Binding is nil if there is none.
	Binding *model.Binding
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

// ListMembers are the clusters that resources can go to.
func ListMembers(ctx context.Context, hub client.Reader) ([]policy.Member, error) {
	var list clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}
	var all []policy.Member
	for i := range list.Items {
		if c := &list.Items[i]; c.DeletionTimestamp.IsZero() {
			all = append(all, policy.Member{Name: c.Name, Labels: c.Labels})
		}
	}
	return all, nil
}

// templatesOf are the templates of the kinds that a policy selects, and those that it has claimed.
func (d *Reconciler) templatesOf(ctx context.Context, policy *policy.Policy) ([]model.TemplateKey, error) {
	taken, err := model.ListClaimed(ctx, d.client, policy.Key())
	if err != nil {
		return nil, err
	}
	var all []model.TemplateKey
	for _, b := range taken {
		all = append(all, model.TemplateKeyOf(b))
	}
	for kind := range policy.Kinds() {
		if d.Kinds.watchKind(ctx, kind) != nil {
			// The kind is retried, and its error is reported on the policy.
			continue
		}
		informer, err := d.metadata.GetInformer(ctx, model.NewMetadata(kind), cache.BlockUntilSynced(false))
		if err != nil || !informer.HasSynced() {
			// The informer enqueues all templates of the kind when it has synced.
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		options := []client.ListOption{client.UnsafeDisableDeepCopy}
		if policy.Namespace != "" {
			options = append(options, client.InNamespace(policy.Namespace))
		}
		if err := d.metadata.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			all = append(all, model.TemplateKey{Kind: kind, ObjectKey: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return all, nil
}
