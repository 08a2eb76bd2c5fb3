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
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/manifest"
)

// newPolicy is an empty one: of the cluster, if it is in no namespace.
func newPolicy(key client.ObjectKey) client.Object {
	if key.Namespace == "" {
		return &policyv1alpha1.ClusterPropagationPolicy{}
	}
	return &policyv1alpha1.PropagationPolicy{}
}

// applyManifest makes what a manifest says part of a question.
func applyManifest(ctx context.Context, c *connect.Cluster, q *query, r connect.Resource, from manifest.Manifest, manager string) error {
	proposed, err := manifest.DryRunApply(ctx, c, r, from, manager)
	if apierrors.IsNotFound(err) && from.HasNamespace(r.Key.Namespace) {
		// There is nothing yet that it could be tried in.
		proposed, err = from.Object.DeepCopy(), nil
		proposed.SetNamespace(r.Key.Namespace)
	}
	if err != nil {
		return err
	}
	if r.Kind() == materializes {
		q.Proposed, err = materializeOf(proposed)
		return err
	}
	object := newPolicy(r.Key)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(proposed.Object, object); err != nil {
		return fmt.Errorf("read %s: %w", r, err)
	}
	q.Policy = policy.Of(object)
	for _, template := range from.Others {
		if err := setDefaultNamespace(c, template); err != nil {
			return fmt.Errorf("read %s: %w", from.Source, err)
		}
		q.Templates = append(q.Templates, template)
	}
	return nil
}

// setDefaultNamespace gives a resource the namespace that it would be applied to.
func setDefaultNamespace(c *connect.Cluster, template *unstructured.Unstructured) error {
	kind := template.GroupVersionKind()
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind.Kind, template.GetName(), err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && template.GetNamespace() == "" {
		template.SetNamespace(c.Namespace)
	}
	return nil
}

// plan tells what the operator will do. For a policy that takes a look at the clusters that it names.
func planResource(ctx context.Context, c *connect.Cluster, r connect.Resource, q query) (account, error) {
	if r.Kind() == meshes {
		return planMesh(ctx, c, r, q.Mesh)
	}
	if r.Kind() != policies && r.Kind() != clusterPolicies {
		return reportResource(ctx, c, r, q)
	}
	subject := q.Policy
	if subject == nil {
		object := newPolicy(r.Key)
		if err := c.Client.Get(ctx, r.Key, object); apierrors.IsNotFound(err) {
			return account{}, r.NotFound()
		} else if err != nil {
			return account{}, fmt.Errorf("get %s: %w", r, err)
		}
		subject = policy.Of(object)
	}
	predicted, err := forecast.Predict(ctx, c.Client, subject, q.Templates...)
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
func watchPolicy(ctx context.Context, c *connect.Cluster, r connect.Resource) (watcher, error) {
	object := newPolicy(r.Key)
	if err := c.Client.Get(ctx, r.Key, object); err != nil {
		return watcher{}, err
	}
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{}}
	if r.Key.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{r.Key.Namespace: {}}
		everywhere := map[string]cache.Config{cache.AllNamespaces: {}}
		options.ByObject[&policyv1alpha1.PropagationPolicy{}] = cache.ByObject{Namespaces: everywhere}
	}
	f, err := newWatchCache(c, options)
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
		return reportPolicy(ctx, f.informers, r.Key, query{})
	}), f.changed}, nil
}
