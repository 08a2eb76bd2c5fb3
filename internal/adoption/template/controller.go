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

// Reconciler brings every template to the binding that its policy asks for.
type Reconciler struct {
	client client.Client
	// metadata is a cache of the kinds that policies select; templates reads from the API server.
	metadata  cache.Cache
	templates client.Reader
	Kinds     *watchedKinds
	// enqueueBinding is called with a binding that stays as it is while its template may have changed.
	enqueueBinding func(binding client.ObjectKey)
}

// Reconcile brings one resource to its binding.
func (d *Reconciler) Reconcile(ctx context.Context, key model.TemplateKey) (reconcile.Result, error) {
	have, err := model.GetBinding(ctx, d.client, key.Namespace, model.BindingName(key.Kind, key.Name))
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := d.Kinds.watchKind(ctx, key.Kind); err != nil {
		// Whether the template exists is unknown.
		return reconcile.Result{RequeueAfter: policy.KindRetryInterval}, nil
	}
	metadata := model.NewMetadata(key.Kind)
	err = d.metadata.Get(ctx, key.ObjectKey, metadata)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	o := Observed{Template: key.Template(metadata), Exists: err == nil && metadata.DeletionTimestamp == nil, Binding: have}
	if o.Exists {
		if o.Policies, err = policy.List(ctx, d.client); err != nil {
			return reconcile.Result{}, err
		}
	}
	switch decision := Decide(o); decision.Action {
	case model.ActionDelete:
		return reconcile.Result{}, d.deleteBinding(ctx, have)
	case model.ActionRestore:
		return reconcile.Result{}, d.undoBinding(ctx, have)
	case model.ActionOrphan:
		return reconcile.Result{}, d.releaseBinding(ctx, have)
	case model.ActionKeep:
		d.enqueueBinding(client.ObjectKeyFromObject(have.Object))
	case model.ActionApply:
		return reconcile.Result{}, d.applyClaimed(ctx, key, o.Template, metadata.UID, decision.Policy, have)
	}
	return reconcile.Result{}, nil
}
