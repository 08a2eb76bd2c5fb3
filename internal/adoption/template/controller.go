// Package template brings templates, the resources of the hub that policies select, to bindings.
package template

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// Reconciler finds the policy of every resource of the hub, and writes down in a binding what that asks for.
type Reconciler struct {
	client client.Client
	// metadata is a cache of the kinds that policies select; full reads a resource as it is right now.
	metadata  cache.Cache
	templates client.Reader
	Kinds     *watchedKinds
	// enqueueBinding tells of a resource whose binding stays as it is.
	enqueueBinding func(binding client.ObjectKey)
}

// Reconcile brings one resource to its binding.
func (d *Reconciler) Reconcile(ctx context.Context, key model.TemplateKey) (reconcile.Result, error) {
	have, err := model.GetBinding(ctx, d.client, key.Namespace, model.BindingName(key.Kind, key.Name))
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := d.Kinds.watchKind(ctx, key.Kind); err != nil {
		// Nobody knows whether the resource is there.
		return reconcile.Result{RequeueAfter: policy.KindRetryInterval}, nil
	}
	seen := model.NewMetadata(key.Kind)
	if err := d.metadata.Get(ctx, key.ObjectKey, seen); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	} else if err != nil || seen.DeletionTimestamp != nil {
		return reconcile.Result{}, d.deleteBinding(ctx, have)
	}
	all, err := policy.List(ctx, d.client)
	if err != nil {
		return reconcile.Result{}, err
	}
	t := key.Template(seen)
	if have != nil && have.Spec.Resource.APIVersion != t.APIVersion {
		as := t
		as.APIVersion = have.Spec.Resource.APIVersion
		if policy.Select(as, all, model.ClaimOf(have)) != nil || policy.Select(t, all, model.PolicyKey{}) == nil {
			// It is taken in another version.
			return reconcile.Result{}, nil
		}
	}
	if have != nil && have.GetDeletionTimestamp() == nil && isAborted(all, model.ClaimOf(have)) {
		// Another policy may take it when all is as it was.
		return reconcile.Result{}, d.undoBinding(ctx, have)
	}
	policy := policy.Select(t, all, model.ClaimOf(have))
	if policy == nil {
		return reconcile.Result{}, d.releaseBinding(ctx, have)
	}
	return reconcile.Result{}, d.applyClaimed(ctx, key, t, seen.UID, policy, have)
}
