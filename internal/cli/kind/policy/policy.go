// Package policy is what commands know about a PropagationPolicy and a ClusterPropagationPolicy.
package policy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/adoption/work"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

// Kind is PropagationPolicy and ClusterPropagationPolicy.
type Kind struct{}

func (*Kind) GroupKinds() []schema.GroupKind {
	return []schema.GroupKind{
		policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.PropagationPolicyKind).GroupKind(),
		policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.ClusterPropagationPolicyKind).GroupKind(),
	}
}

// newPolicy is an empty ClusterPropagationPolicy for a key without namespace, and an empty PropagationPolicy for others.
func newPolicy(key client.ObjectKey) client.Object {
	if key.Namespace == "" {
		return &policyv1alpha1.ClusterPropagationPolicy{}
	}
	return &policyv1alpha1.PropagationPolicy{}
}

func getPolicy(ctx context.Context, reader client.Reader, r connect.Resource) (client.Object, error) {
	object := newPolicy(r.Key)
	return object, r.Get(ctx, reader, object)
}

func (*Kind) Hints() map[string]string {
	return map[string]string{"retry": fmt.Sprintf("what a policy could not apply is tried again every %s", work.RecheckInterval)}
}

// Watch keeps a copy of what the status of a policy is made of: a policy may take over a thousand resources, too many to list
// again and again.
func (k *Kind) Watch(ctx context.Context, r connect.Resource) (kind.Watch, error) {
	object, err := getPolicy(ctx, r.Cluster.Client, r)
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
	return kind.NewCachedWatch(ctx, r, options, watched, k.Status)
}
