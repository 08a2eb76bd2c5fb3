package policy

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// Watch keeps a copy of what the status of a policy is made of: a policy may take over a thousand resources, too many to list
// again and again.
func (k *Kind) Watch(ctx context.Context, c *connect.Cluster, r connect.Resource) (kind.Watch, error) {
	object, err := getPolicy(ctx, c.Client, r)
	if err != nil {
		return kind.Watch{}, err
	}
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{}}
	if r.Key.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{r.Key.Namespace: {}}
		everywhere := map[string]cache.Config{cache.AllNamespaces: {}}
		options.ByObject[&policyv1alpha1.PropagationPolicy{}] = cache.ByObject{Namespaces: everywhere}
	}
	watched := append(forecast.WatchedKinds(policy.Of(object)), &policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{})
	return kind.NewCachedWatch(ctx, c, options, watched, func(ctx context.Context, reader client.Reader) (render.Status, error) {
		return readStatus(ctx, reader, r)
	})
}
