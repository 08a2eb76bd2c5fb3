package adoption

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// templateKey names a resource of the hub.
type templateKey struct {
	kind schema.GroupVersionKind
	client.ObjectKey
}

func (k templateKey) template(seen *metav1.PartialObjectMetadata) Template {
	return Template{APIVersion: k.kind.GroupVersion().String(), Kind: k.kind.Kind, Namespace: seen.Namespace, Name: seen.Name, Labels: seen.Labels}
}

// detector finds the policy of every resource of the hub, and writes down in a binding what that asks for.
type detector struct {
	client client.Client
	// metadata is a cache of the kinds that policies select; full reads a resource as it is right now.
	metadata cache.Cache
	full     client.Reader
	kinds    *kinds
	// changed tells of a resource whose binding stays as it is.
	changed func(binding client.ObjectKey)
}

// Reconcile brings one resource to its binding.
func (d *detector) Reconcile(ctx context.Context, key templateKey) (reconcile.Result, error) {
	have, err := getBinding(ctx, d.client, key.Namespace, bindingName(key.kind, key.Name))
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := d.kinds.follow(ctx, key.kind); err != nil {
		// Nobody knows whether the resource is there.
		return reconcile.Result{RequeueAfter: followAgain}, nil
	}
	seen := metadataOf(key.kind)
	if err := d.metadata.Get(ctx, key.ObjectKey, seen); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	} else if err != nil || seen.DeletionTimestamp != nil {
		return reconcile.Result{}, d.gone(ctx, have)
	}
	all, err := policies(ctx, d.client)
	if err != nil {
		return reconcile.Result{}, err
	}
	t := key.template(seen)
	if have != nil && have.spec.Resource.APIVersion != t.APIVersion {
		as := t
		as.APIVersion = have.spec.Resource.APIVersion
		if choose(as, all, claimOf(have)) != nil || choose(t, all, Key{}) == nil {
			// It is taken in another version.
			return reconcile.Result{}, nil
		}
	}
	if have != nil && have.GetDeletionTimestamp() == nil && abortedIn(all, claimOf(have)) {
		// Another policy may take it when all is as it was.
		return reconcile.Result{}, d.undo(ctx, have)
	}
	policy := choose(t, all, claimOf(have))
	if policy == nil {
		return reconcile.Result{}, d.unclaimed(ctx, have)
	}
	return reconcile.Result{}, d.claimed(ctx, key, t, seen.UID, policy, have)
}

// version of a resource, if its kind is followed.
func (d *detector) version(ctx context.Context, key templateKey) string {
	if !d.kinds.follows(key.kind) {
		return ""
	}
	seen := metadataOf(key.kind)
	if err := d.metadata.Get(ctx, key.ObjectKey, seen); err != nil {
		return ""
	}
	return seen.ResourceVersion
}

// gone removes the binding of a resource that is gone.
func (d *detector) gone(ctx context.Context, have *binding) error {
	if have == nil || have.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := d.require(ctx, have, nil, false); err != nil {
		return err
	}
	return client.IgnoreNotFound(d.client.Delete(ctx, have.Object))
}

// unclaimed is a resource that no policy takes. What has been taken to clusters stays there when its policy goes.
func (d *detector) unclaimed(ctx context.Context, have *binding) error {
	if have == nil || have.GetDeletionTimestamp() != nil {
		return nil
	}
	if claimOf(have) == (Key{}) {
		if len(have.spec.RequiredBy) > 0 {
			d.changed(client.ObjectKeyFromObject(have.Object))
		}
		return nil
	}
	if err := d.require(ctx, have, nil, false); err != nil {
		return err
	}
	released := have.copy()
	claim(released, nil)
	return d.client.Update(ctx, released.Object, client.FieldOwner(FieldOwner))
}

// abortedIn tells whether one of the policies was aborted.
func abortedIn(all []*Policy, key Key) bool {
	return slices.ContainsFunc(all, func(p *Policy) bool { return p.Key() == key && p.Aborted })
}

// undo has a binding go, and everything be as it was before.
func (d *detector) undo(ctx context.Context, have *binding) error {
	if err := d.require(ctx, have, nil, true); err != nil {
		return err
	}
	if have.GetAnnotations()[AnnotationUndo] != "true" {
		marked := have.copy()
		marked.SetAnnotations(joined(have.GetAnnotations(), nil, map[string]string{AnnotationUndo: "true"}))
		if err := d.client.Update(ctx, marked.Object, client.FieldOwner(FieldOwner)); err != nil {
			return err
		}
		have = marked
	}
	return client.IgnoreNotFound(d.client.Delete(ctx, have.Object))
}

// claimed is a resource that a policy takes.
func (d *detector) claimed(ctx context.Context, key templateKey, t Template, uid types.UID, policy *Policy, have *binding) error {
	if have != nil && have.GetDeletionTimestamp() != nil {
		return nil
	}
	members, err := joinedMembers(ctx, d.client)
	if err != nil {
		return err
	}
	divided := policy.Spec.Placement.Divides()
	var template *unstructured.Unstructured
	if divided || policy.Spec.PropagateDeps {
		template = &unstructured.Unstructured{}
		template.SetGroupVersionKind(key.kind)
		if err := d.full.Get(ctx, key.ObjectKey, template); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	replicas := int32(-1)
	if divided {
		replicas = replicasOf(template)
	}
	bound, err := d.bind(ctx, t, uid, policy, members, replicas, have)
	if err != nil {
		return err
	}
	var needed []templateKey
	if policy.Spec.PropagateDeps {
		if needed, err = needs(template); err != nil {
			return err
		}
	}
	if err := d.require(ctx, bound, needed, false); err != nil {
		return err
	}
	if have != nil && have.GetResourceVersion() == bound.GetResourceVersion() {
		d.changed(client.ObjectKeyFromObject(bound.Object))
	}
	return nil
}

// replicasOf a resource are negative if it has none.
func replicasOf(template *unstructured.Unstructured) int32 {
	if n, found, err := unstructured.NestedInt64(template.Object, "spec", "replicas"); err == nil && found {
		return int32(n)
	}
	return -1
}

// bind writes the binding of a resource, if it says anything new.
func (d *detector) bind(ctx context.Context, t Template, uid types.UID, policy *Policy, members []Member, replicas int32, have *binding) (*binding, error) {
	want, err := intended(t, uid, policy, members, replicas, have)
	if err != nil {
		return nil, err
	}
	switch {
	case have == nil:
		return want, d.client.Create(ctx, want.Object, client.FieldOwner(FieldOwner))
	case equality.Semantic.DeepEqual(have.spec, want.spec) && equality.Semantic.DeepEqual(have.GetAnnotations(), want.GetAnnotations()):
		return have, nil
	}
	return want, d.client.Update(ctx, want.Object, client.FieldOwner(FieldOwner))
}

// intended is the binding of a resource as its policy asks for it, made from the one that there is.
func intended(t Template, uid types.UID, policy *Policy, members []Member, replicas int32, have *binding) (*binding, error) {
	clusters, err := place(policy.Spec.Placement, members, replicas)
	if err != nil {
		return nil, err
	}
	want := newBinding(t.Namespace, bindingName(t.gvk(), t.Name))
	if have != nil {
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
		Suspension:         suspension(policy), PreserveResourcesOnDeletion: policy.Spec.PreserveResourcesOnDeletion,
		PropagateDeps: policy.Spec.PropagateDeps, SchedulerName: policy.Spec.SchedulerName,
		RequiredBy: want.spec.RequiredBy,
	}
	if want.spec.ConflictResolution == "" {
		want.spec.ConflictResolution = policyv1alpha1.ConflictAbort
	}
	return want, nil
}

// suspension is what a policy says about it, and a paused policy suspends all.
func suspension(policy *Policy) *policyv1alpha1.Suspension {
	if !policy.Paused {
		return policy.Spec.Suspension
	}
	return &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
}

// joinedMembers are the clusters that resources can go to.
func joinedMembers(ctx context.Context, hub client.Reader) ([]Member, error) {
	var list clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
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

// concerned are the resources of the kinds that a policy selects, and those that it has taken.
func (d *detector) concerned(ctx context.Context, policy *Policy) ([]templateKey, error) {
	taken, err := claims(ctx, d.client, policy.Key())
	if err != nil {
		return nil, err
	}
	var all []templateKey
	for _, b := range taken {
		all = append(all, templateOf(b))
	}
	for kind := range policy.kinds() {
		if d.kinds.follow(ctx, kind) != nil {
			// It is tried again, and told on the policy.
			continue
		}
		informer, err := d.metadata.GetInformer(ctx, metadataOf(kind), cache.BlockUntilSynced(false))
		if err != nil || !informer.HasSynced() {
			// All of them are heard of when it has.
			continue
		}
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
