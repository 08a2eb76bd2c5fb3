package adoption

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// AnnotationAborted set to "true" on a policy has it release what it has taken over, put back what that was before, and take
// nothing any more.
const AnnotationAborted = "fairlead.dev/aborted"

// policyIn is the policy that an object is, and where its status is; nil if it is none.
func policyIn(object client.Object) (*Policy, *policyv1alpha1.PropagationStatus) {
	p := &Policy{
		Namespace: object.GetNamespace(), Name: object.GetName(), Generation: object.GetGeneration(),
		Deleted: object.GetDeletionTimestamp() != nil,
		Paused:  object.GetAnnotations()[fairlead.AnnotationPaused] == "true",
		Aborted: object.GetAnnotations()[AnnotationAborted] == "true",
	}
	switch object := object.(type) {
	case *policyv1alpha1.PropagationPolicy:
		p.Spec = object.Spec
		return p, &object.Status
	case *policyv1alpha1.ClusterPropagationPolicy:
		p.Spec = object.Spec
		return p, &object.Status
	}
	return nil, nil
}

// getPolicy reads one, of the cluster if it has no namespace; nil if there is none.
func getPolicy(ctx context.Context, reader client.Reader, key Key) (client.Object, error) {
	var object client.Object = &policyv1alpha1.PropagationPolicy{}
	if key.Namespace == "" {
		object = &policyv1alpha1.ClusterPropagationPolicy{}
	}
	err := reader.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, object)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get policy %s: %w", key, err)
	}
	if err != nil {
		return nil, nil
	}
	return object, nil
}

// PolicyOf is the policy that an object is, nil if it is none.
func PolicyOf(object client.Object) *Policy {
	p, _ := policyIn(object)
	return p
}

// policies are all of them, in an order that does not depend on how they were found.
func policies(ctx context.Context, reader client.Reader) ([]*Policy, error) {
	var own policyv1alpha1.PropagationPolicyList
	if err := reader.List(ctx, &own, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list PropagationPolicies: %w", err)
	}
	var ofCluster policyv1alpha1.ClusterPropagationPolicyList
	if err := reader.List(ctx, &ofCluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ClusterPropagationPolicies: %w", err)
	}
	var all []*Policy
	for i := range own.Items {
		p, _ := policyIn(&own.Items[i])
		all = append(all, p)
	}
	for i := range ofCluster.Items {
		p, _ := policyIn(&ofCluster.Items[i])
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Policy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}
