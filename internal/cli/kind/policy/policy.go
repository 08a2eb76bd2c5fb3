// Package policy is what commands know about a PropagationPolicy and a ClusterPropagationPolicy.
package policy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/work"
	"github.com/fairlead/fairlead/internal/cli/connect"
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
	if err := reader.Get(ctx, r.Key, object); err != nil {
		return nil, r.NotFoundOr(fmt.Errorf("get %s: %w", r, err))
	}
	return object, nil
}

// RetryHint is when the operator tries again.
func (*Kind) RetryHint() string {
	return fmt.Sprintf("what a policy could not apply is tried again every %s", work.RecheckInterval)
}
