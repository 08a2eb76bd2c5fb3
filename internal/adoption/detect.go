package adoption

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Where a binding says which policy has taken its resource.
const (
	AnnotationPolicyNamespace = "propagationpolicy.karmada.io/namespace"
	AnnotationPolicyName      = "propagationpolicy.karmada.io/name"
	AnnotationClusterPolicy   = "clusterpropagationpolicy.karmada.io/name"
)

// templateKey names a resource of the hub.
type templateKey struct {
	kind schema.GroupVersionKind
	client.ObjectKey
}

// detector finds the policy of every resource of the hub, and writes down in a binding what that asks for.
type detector struct {
	client client.Client
	// metadata is a cache of the kinds that policies select; full reads a resource as it is right now.
	metadata   cache.Cache
	full       client.Reader
	controller controller.TypedController[templateKey]

	mu       sync.Mutex
	followed map[schema.GroupVersionKind]bool
}

// Reconcile brings one resource to its binding.
func (d *detector) Reconcile(ctx context.Context, key templateKey) (reconcile.Result, error) {
	binding, err := getBinding(ctx, d.client, key.Namespace, bindingName(key.kind.Kind, key.Name))
	if err != nil {
		return reconcile.Result{}, err
	}
	seen := metadataOf(key.kind)
	if err := d.metadata.Get(ctx, key.ObjectKey, seen); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	} else if err != nil || seen.DeletionTimestamp != nil {
		if binding == nil || binding.GetDeletionTimestamp() != nil || binding.spec.Resource.APIVersion != key.kind.GroupVersion().String() {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, client.IgnoreNotFound(d.client.Delete(ctx, binding.Object))
	}
	policies, err := d.policies(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	t := Template{APIVersion: key.kind.GroupVersion().String(), Kind: key.kind.Kind, Namespace: seen.Namespace, Name: seen.Name, Labels: seen.Labels}
	policy := choose(t, policies, claimOf(binding))
	if policy == nil {
		// What has been taken to clusters stays there when its policy goes.
		return reconcile.Result{}, nil
	}
	members, err := d.members(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	replicas, err := d.replicas(ctx, key, policy)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, d.bind(ctx, t, seen.UID, policy, members, replicas, binding)
}

// bind writes the binding of a resource, if it says anything new.
func (d *detector) bind(ctx context.Context, t Template, uid types.UID, policy *Policy, members []Member, replicas int32, have *binding) error {
	clusters, err := place(policy.Spec.Placement, members, replicas)
	if err != nil {
		return err
	}
	want := newBinding(t.Namespace, bindingName(t.Kind, t.Name))
	if have != nil {
		if have.GetDeletionTimestamp() != nil {
			return nil
		}
		want = have.copy()
	}
	controllerutil.AddFinalizer(want.Object, FinalizerBinding)
	claim(want, policy)
	*want.spec = workv1alpha2.ResourceBindingSpec{
		Resource:           workv1alpha2.ObjectReference{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, UID: uid},
		Clusters:           clusters,
		Replicas:           max(0, replicas),
		ConflictResolution: policy.Spec.ConflictResolution,
		Placement:          &policy.Spec.Placement,
		Suspension:         policy.Spec.Suspension, PreserveResourcesOnDeletion: policy.Spec.PreserveResourcesOnDeletion,
		PropagateDeps: policy.Spec.PropagateDeps, SchedulerName: policy.Spec.SchedulerName,
	}
	if want.spec.ConflictResolution == "" {
		want.spec.ConflictResolution = policyv1alpha1.ConflictAbort
	}
	switch {
	case have == nil:
		return d.client.Create(ctx, want.Object, client.FieldOwner(FieldOwner))
	case equality.Semantic.DeepEqual(have.spec, want.spec) && equality.Semantic.DeepEqual(have.GetAnnotations(), want.GetAnnotations()):
		return nil
	}
	return d.client.Update(ctx, want.Object, client.FieldOwner(FieldOwner))
}

// claim writes down which policy has taken a resource.
func claim(binding *binding, policy *Policy) {
	annotations := joined(binding.GetAnnotations(), []string{AnnotationPolicyNamespace, AnnotationPolicyName, AnnotationClusterPolicy})
	if annotations == nil {
		annotations = map[string]string{}
	}
	if policy.Namespace == "" {
		annotations[AnnotationClusterPolicy] = policy.Name
	} else {
		annotations[AnnotationPolicyNamespace], annotations[AnnotationPolicyName] = policy.Namespace, policy.Name
	}
	binding.SetAnnotations(annotations)
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

func (d *detector) policies(ctx context.Context) ([]*Policy, error) {
	var own policyv1alpha1.PropagationPolicyList
	if err := d.client.List(ctx, &own, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list PropagationPolicies: %w", err)
	}
	var all []*Policy
	for i := range own.Items {
		p := &own.Items[i]
		all = append(all, &Policy{Namespace: p.Namespace, Name: p.Name, Generation: p.Generation, Deleted: !p.DeletionTimestamp.IsZero(), Spec: p.Spec})
	}
	var ofCluster policyv1alpha1.ClusterPropagationPolicyList
	if err := d.client.List(ctx, &ofCluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ClusterPropagationPolicies: %w", err)
	}
	for i := range ofCluster.Items {
		p := &ofCluster.Items[i]
		all = append(all, &Policy{Name: p.Name, Generation: p.Generation, Deleted: !p.DeletionTimestamp.IsZero(), Spec: p.Spec})
	}
	return sorted(all), nil
}

func (d *detector) members(ctx context.Context) ([]Member, error) {
	var list clusterv1alpha1.ClusterList
	if err := d.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}
	var all []Member
	for i := range list.Items {
		if c := &list.Items[i]; c.DeletionTimestamp.IsZero() {
			all = append(all, Member{c.Name, c.Labels})
		}
	}
	return all, nil
}

// replicas are read only where they are to be divided. They are negative for what has none.
func (d *detector) replicas(ctx context.Context, key templateKey, policy *Policy) (int32, error) {
	if s := policy.Spec.Placement.ReplicaScheduling; s == nil || s.ReplicaSchedulingType != policyv1alpha1.ReplicasDivided {
		return -1, nil
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(key.kind)
	if err := d.full.Get(ctx, key.ObjectKey, template); err != nil {
		return 0, err
	}
	if n, found, err := unstructured.NestedInt64(template.Object, "spec", "replicas"); err == nil && found {
		return int32(n), nil
	}
	return -1, nil
}

// follow has the controller hear of all resources of the kinds that a policy selects, and look at those that it may concern.
func (d *detector) follow(ctx context.Context, policy *Policy) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range policy.Spec.ResourceSelectors {
		kind := schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
		if d.followed[kind] {
			continue
		}
		err := d.controller.Watch(source.TypedKind(d.metadata, metadataOf(kind),
			handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o *metav1.PartialObjectMetadata) []templateKey {
				return []templateKey{{kind, client.ObjectKeyFromObject(o)}}
			})))
		if err != nil {
			return fmt.Errorf("follow %s: %w", kind.Kind, err)
		}
		d.followed[kind] = true
	}
	return nil
}

// concerned are the resources of the kinds that a policy selects.
func (d *detector) concerned(ctx context.Context, policy *Policy) ([]templateKey, error) {
	var all []templateKey
	seen := map[schema.GroupVersionKind]bool{}
	for _, s := range policy.Spec.ResourceSelectors {
		kind := schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
		if seen[kind] {
			continue
		}
		seen[kind] = true
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		options := []client.ListOption{client.UnsafeDisableDeepCopy}
		if policy.Namespace != "" {
			options = append(options, client.InNamespace(policy.Namespace))
		}
		if err := d.metadata.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			all = append(all, templateKey{kind, client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return all, nil
}
