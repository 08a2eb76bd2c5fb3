package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// newPolicy is an empty one: of the cluster, if it is in no namespace.
func newPolicy(key client.ObjectKey) client.Object {
	if key.Namespace == "" {
		return &policyv1alpha1.ClusterPropagationPolicy{}
	}
	return &policyv1alpha1.PropagationPolicy{}
}

// applyManifest makes what a manifest says part of a question.
func (c *cluster) applyManifest(ctx context.Context, q *query, r resource, from manifest, manager string) error {
	proposed, err := c.dryRunApply(ctx, r, from, manager)
	if apierrors.IsNotFound(err) && from.hasNamespace(r.key.Namespace) {
		// There is nothing yet that it could be tried in.
		proposed, err = from.object.DeepCopy(), nil
		proposed.SetNamespace(r.key.Namespace)
	}
	if err != nil {
		return err
	}
	if r.kind() == materializes {
		q.Proposed, err = materializeOf(proposed)
		return err
	}
	object := newPolicy(r.key)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(proposed.Object, object); err != nil {
		return fmt.Errorf("read %s: %w", r, err)
	}
	q.Policy = policy.Of(object)
	for _, template := range from.others {
		if err := c.setDefaultNamespace(template); err != nil {
			return fmt.Errorf("read %s: %w", from.source, err)
		}
		q.Templates = append(q.Templates, template)
	}
	return nil
}

// setDefaultNamespace gives a resource the namespace that it would be applied to.
func (c *cluster) setDefaultNamespace(template *unstructured.Unstructured) error {
	kind := template.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind.Kind, template.GetName(), err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && template.GetNamespace() == "" {
		template.SetNamespace(c.namespace)
	}
	return nil
}

// plan tells what the operator will do. For a policy that takes a look at the clusters that it names.
func (c *cluster) plan(ctx context.Context, r resource, q query) (account, error) {
	if r.kind() == meshes {
		return c.planMesh(ctx, r, q.Mesh)
	}
	if r.kind() != policies && r.kind() != clusterPolicies {
		return c.report(ctx, r, q)
	}
	subject := q.Policy
	if subject == nil {
		object := newPolicy(r.key)
		if err := c.client.Get(ctx, r.key, object); apierrors.IsNotFound(err) {
			return account{}, r.notFound()
		} else if err != nil {
			return account{}, fmt.Errorf("get %s: %w", r, err)
		}
		subject = policy.Of(object)
	}
	predicted, err := forecast.Predict(ctx, c.client, subject, q.Templates...)
	if err != nil {
		return account{}, err
	}
	return account{Plan: predicted.Plan(), Forecast: &predicted}, nil
}

// reportPolicy tells how far the operator is with a policy.
func reportPolicy(ctx context.Context, reader client.Reader, key client.ObjectKey, _ query) (account, error) {
	object := newPolicy(key)
	if err := reader.Get(ctx, key, object); err != nil {
		return account{}, fmt.Errorf("get policy %s: %w", key, err)
	}
	plan, err := forecast.Status(ctx, reader, policy.Of(object))
	if err != nil {
		return account{}, err
	}
	result := account{Plan: plan, Generation: object.GetGeneration(), Adoption: true}
	switch p := object.(type) {
	case *policyv1alpha1.PropagationPolicy:
		result.ObservedGeneration, result.Conditions = p.Status.ObservedGeneration, p.Status.Conditions
	case *policyv1alpha1.ClusterPropagationPolicy:
		result.ObservedGeneration, result.Conditions = p.Status.ObservedGeneration, p.Status.Conditions
	}
	return result, nil
}

// watchPolicy keeps a copy of what a policy is result from: it may take a thousand resources, which nobody should list again and
// again.
func (c *cluster) watchPolicy(ctx context.Context, r resource) (watcher, error) {
	object := newPolicy(r.key)
	if err := c.client.Get(ctx, r.key, object); err != nil {
		return watcher{}, err
	}
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{}}
	if r.key.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{r.key.Namespace: {}}
		everywhere := map[string]cache.Config{cache.AllNamespaces: {}}
		options.ByObject[&policyv1alpha1.PropagationPolicy{}] = cache.ByObject{Namespaces: everywhere}
	}
	f, err := c.newWatchCache(options)
	if err != nil {
		return watcher{}, err
	}
	kinds := append(forecast.WatchedKinds(policy.Of(object)), &policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{})
	for _, kind := range kinds {
		if err := f.watchKinds(ctx, kind); err != nil && !meta.IsNoMatchError(err) {
			return watcher{}, err
		}
	}
	if err := f.start(ctx, func() bool { return true }); err != nil {
		return watcher{}, err
	}
	return watcher{f.failOnError(func(ctx context.Context) (account, error) {
		return reportPolicy(ctx, f.informers, r.key, query{})
	}), f.changed}, nil
}
