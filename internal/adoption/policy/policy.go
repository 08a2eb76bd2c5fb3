// Package policy decides which policy takes a template, which clusters that goes to and how conflicts are resolved, and reports
// on a policy what became of what it takes.
package policy

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// Policy is a PropagationPolicy, or a ClusterPropagationPolicy, which is in no namespace.
type Policy struct {
	Namespace, Name string
	// Generation of the spec, and whether the policy is being deleted, paused or aborted.
	Generation               int64
	Deleted, Paused, Aborted bool
	// ChangedAt is when the spec was last written.
	ChangedAt time.Time
	Spec      policyv1alpha1.PropagationSpec
	// Status is that of the object, nil for a policy that was made without one.
	Status *policyv1alpha1.PropagationStatus
}

func (p *Policy) Key() model.PolicyKey { return model.PolicyKey{Namespace: p.Namespace, Name: p.Name} }

// Kinds are those that the policy selects resources of.
func (p *Policy) Kinds() map[schema.GroupVersionKind]bool {
	all := map[schema.GroupVersionKind]bool{}
	for _, s := range p.Spec.ResourceSelectors {
		all[schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)] = true
	}
	return all
}

// MaxKinds bounds the kinds whose resources a policy follows. Each takes a watch, and memory for all of its resources on the hub.
const MaxKinds = 64

// FollowedKinds are the first of the kinds that the policy selects, in the order of its selectors.
func (p *Policy) FollowedKinds() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	seen := sets.New[schema.GroupVersionKind]()
	for _, s := range p.Spec.ResourceSelectors {
		kind := schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
		if seen.Has(kind) {
			continue
		}
		if all = append(all, kind); len(all) == MaxKinds {
			break
		}
		seen.Insert(kind)
	}
	return all
}

// SuspensionOf is the suspension of a policy. A paused one suspends dispatching.
func SuspensionOf(policy *Policy) *workv1alpha2.Suspension {
	switch {
	case policy.Paused:
		return &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
	case policy.Spec.Suspension != nil:
		return &workv1alpha2.Suspension{Suspension: *policy.Spec.Suspension.DeepCopy()}
	}
	return nil
}

// Object names the policy.
func (p *Policy) Object() passage.Object {
	kind := policyv1alpha1.PropagationPolicyKind
	if p.Namespace == "" {
		kind = policyv1alpha1.ClusterPropagationPolicyKind
	}
	return passage.Object{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: kind, Namespace: p.Namespace, Name: p.Name}
}

// Hold is why nothing is written for the policy for now, nil if it is.
func (p *Policy) Hold() *passage.Reason {
	switch s := p.Spec.Suspension; {
	case p.Aborted:
		return passage.Hold(model.ReasonAborted, "the policy is aborted, and takes no resources: remove annotation %s to start again", model.AnnotationAborted)
	case p.Paused:
		return passage.Hold(model.ReasonPaused, "the policy is paused: nothing is written to clusters until the policy is resumed")
	case s != nil && ptr.Deref(s.Dispatching, false):
		return passage.Hold(model.ReasonSuspended, "nothing is written to clusters while spec.suspension.dispatching of the policy is true")
	}
	return nil
}

// Of is the policy that an object is, nil if it is none.
func Of(object client.Object) *Policy {
	p := &Policy{
		Namespace: object.GetNamespace(), Name: object.GetName(), Generation: object.GetGeneration(),
		Deleted:   object.GetDeletionTimestamp() != nil,
		Paused:    object.GetAnnotations()[fairlead.AnnotationPaused] == "true",
		Aborted:   object.GetAnnotations()[model.AnnotationAborted] == "true",
		ChangedAt: specChangedAt(object),
	}
	switch object := object.(type) {
	case *policyv1alpha1.PropagationPolicy:
		p.Spec, p.Status = object.Spec, &object.Status
		return p
	case *policyv1alpha1.ClusterPropagationPolicy:
		p.Spec, p.Status = object.Spec, &object.Status
		return p
	}
	return nil
}

// specChangedAt is the last time at which a client has written the spec, by its managedFields; without any, the creation.
func specChangedAt(object client.Object) time.Time {
	last := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
			last = entry.Time.Time
		}
	}
	return last
}

// List lists all policies, by namespace and name.
func List(ctx context.Context, reader client.Reader) ([]*Policy, error) {
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
		all = append(all, Of(&own.Items[i]))
	}
	for i := range ofCluster.Items {
		all = append(all, Of(&ofCluster.Items[i]))
	}
	slices.SortFunc(all, func(a, b *Policy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// DividesByRoom tells whether any policy divides replicas by the room of clusters.
func DividesByRoom(ctx context.Context, reader client.Reader) (bool, error) {
	all, err := List(ctx, reader)
	return slices.ContainsFunc(all, func(p *Policy) bool { return p.Spec.Placement.DividesByRoom() }), err
}

// IsOutdated holds for a binding that was written for an earlier spec of its policy, or before a cluster joined or left. One for
// which a Lazy policy is deferred is not outdated.
func IsOutdated(b *model.Binding, policy *Policy, members []Member) bool {
	deferred := model.IsDeferred(b)
	if !equality.Semantic.DeepEqual(b.Spec.Suspension, SuspensionOf(policy)) || policy.isRequested(b.Spec) == deferred || deferred && !policy.IsLazy() {
		return true
	}
	return b.Spec.Placement != nil && !isPlaced(b, *b.Spec.Placement, members)
}

// isPlaced tells whether a binding goes to the clusters that a placement selects among the members. Replicas are not compared: the
// binding of a resource without any has zero of them.
func isPlaced(b *model.Binding, placement policyv1alpha1.Placement, members []Member) bool {
	demand := Demand{}
	if b.Spec.ReplicaRequirements != nil {
		demand.Requests = b.Spec.ReplicaRequirements.ResourceRequest
	}
	equal := func(replicas int32) bool {
		demand.Replicas = replicas
		placed, err := Place(placement, members, demand, PlacedBy(b))
		return err != nil || slices.EqualFunc(placed.Clusters, b.Spec.Clusters, func(a, b workv1alpha2.TargetCluster) bool { return a.Name == b.Name })
	}
	return equal(-1) || placement.Divides() && equal(b.Spec.Replicas)
}
