package adoption

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Where a binding says which policy has taken its resource.
const (
	AnnotationPolicyNamespace = "propagationpolicy.karmada.io/namespace"
	AnnotationPolicyName      = "propagationpolicy.karmada.io/name"
	AnnotationClusterPolicy   = "clusterpropagationpolicy.karmada.io/name"
)

// claim writes down which policy has taken a resource, nil if none has.
func claim(binding *binding, policy *Policy) {
	ours := map[string]string{}
	switch {
	case policy == nil:
	case policy.Namespace == "":
		ours[AnnotationClusterPolicy] = policy.Name
	default:
		ours[AnnotationPolicyNamespace], ours[AnnotationPolicyName] = policy.Namespace, policy.Name
	}
	binding.SetAnnotations(joined(binding.GetAnnotations(), []string{AnnotationPolicyNamespace, AnnotationPolicyName, AnnotationClusterPolicy}, ours))
}

// claimOf is the policy that has taken a resource.
func claimOf(binding *binding) Key {
	if binding == nil {
		return Key{}
	}
	annotations := binding.GetAnnotations()
	if name := annotations[AnnotationClusterPolicy]; name != "" {
		return Key{"", name}
	}
	return Key{annotations[AnnotationPolicyNamespace], annotations[AnnotationPolicyName]}
}

// byClaim is the index of bindings by the policy that has taken their resource.
const byClaim = "claim"

func claimIndex(object client.Object) []string { return []string{claimOf(bindingIn(object)).String()} }

// claims are the bindings of all that a policy has taken.
func claims(ctx context.Context, reader client.Reader, policy Key) ([]*binding, error) {
	return indexed(ctx, reader, policy.Namespace, client.MatchingFields{byClaim: policy.String()})
}

// indexed finds bindings in a namespace, or those in none and in all of them.
func indexed(ctx context.Context, reader client.Reader, namespace string, by ...client.ListOption) ([]*binding, error) {
	var all []*binding
	var list workv1alpha2.ResourceBindingList
	by = append(by, client.UnsafeDisableDeepCopy)
	if err := reader.List(ctx, &list, append(by, client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("list ResourceBindings: %w", err)
	}
	for i := range list.Items {
		all = append(all, bindingIn(&list.Items[i]))
	}
	if namespace != "" {
		return all, nil
	}
	var ofCluster workv1alpha2.ClusterResourceBindingList
	if err := reader.List(ctx, &ofCluster, by...); err != nil {
		return nil, fmt.Errorf("list ClusterResourceBindings: %w", err)
	}
	for i := range ofCluster.Items {
		all = append(all, bindingIn(&ofCluster.Items[i]))
	}
	return all, nil
}

// templateOf is the resource that a binding is for.
func templateOf(b *binding) templateKey {
	r := b.spec.Resource
	key := templateKey{kind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)}
	key.Namespace, key.Name = r.Namespace, r.Name
	return key
}
