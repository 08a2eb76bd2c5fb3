package adoption

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// byRequirer is the index of bindings by those that need their resource.
const byRequirer = "requirer"

func requirerIndex(object client.Object) []string {
	var all []string
	for _, r := range bindingIn(object).spec.RequiredBy {
		all = append(all, r.Namespace+"/"+r.Name)
	}
	return all
}

// required are the bindings of what a resource needs.
func required(ctx context.Context, reader client.Reader, by *binding) ([]*binding, error) {
	return indexed(ctx, reader, by.GetNamespace(), client.MatchingFields{byRequirer: by.GetNamespace() + "/" + by.GetName()})
}

// require has all that a resource needs go where it goes, and nothing else any more because of it.
func (d *detector) require(ctx context.Context, by *binding, needed []templateKey, undo bool) error {
	wanted := map[client.ObjectKey]bool{}
	for _, key := range needed {
		if err := d.kinds.follow(ctx, key.kind); err != nil {
			continue
		}
		name := client.ObjectKey{Namespace: key.Namespace, Name: bindingName(key.kind, key.Name)}
		wanted[name] = true
		if err := d.lend(ctx, by, key, name); err != nil {
			return err
		}
	}
	lent, err := required(ctx, d.client, by)
	if err != nil {
		return err
	}
	for _, b := range lent {
		if wanted[client.ObjectKeyFromObject(b.Object)] {
			continue
		}
		if err := d.takeBack(ctx, by, b.copy(), undo); err != nil {
			return err
		}
	}
	return nil
}

// lend has a resource go where another one needs it. One that is not on the hub has to be in the clusters already.
func (d *detector) lend(ctx context.Context, by *binding, key templateKey, name client.ObjectKey) error {
	seen := metadataOf(key.kind)
	if err := d.metadata.Get(ctx, key.ObjectKey, seen); err != nil || seen.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	if everyClusterHas(key.template(seen)) {
		return nil
	}
	have, err := getBinding(ctx, d.client, name.Namespace, name.Name)
	if err != nil {
		return err
	}
	snapshot := workv1alpha2.BindingSnapshot{Namespace: by.GetNamespace(), Name: by.GetName()}
	for _, c := range by.spec.Clusters {
		snapshot.Clusters = append(snapshot.Clusters, workv1alpha2.TargetCluster{Name: c.Name})
	}
	if have == nil {
		b := newBinding(name.Namespace, name.Name)
		controllerutil.AddFinalizer(b.Object, FinalizerBinding)
		r := key.template(seen)
		*b.spec = workv1alpha2.ResourceBindingSpec{
			Resource:           workv1alpha2.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: seen.UID},
			ConflictResolution: by.spec.ConflictResolution, Suspension: by.spec.Suspension, RequiredBy: []workv1alpha2.BindingSnapshot{snapshot},
			// Somebody else in the cluster may need it too.
			PreserveResourcesOnDeletion: ptr.To(true),
		}
		return d.client.Create(ctx, b.Object, client.FieldOwner(FieldOwner))
	}
	if have.GetDeletionTimestamp() != nil {
		return nil
	}
	want := have.copy()
	want.spec.RequiredBy = append(without(want.spec.RequiredBy, by), snapshot)
	slices.SortFunc(want.spec.RequiredBy, func(a, b workv1alpha2.BindingSnapshot) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	if claimOf(have) == (Key{}) {
		if err := d.agree(ctx, by, want); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(have.spec, want.spec) {
		return nil
	}
	return d.client.Update(ctx, want.Object, client.FieldOwner(FieldOwner))
}

// agree takes over what is there already only if all that need it do, and writes nothing as long as one of them is suspended.
func (d *detector) agree(ctx context.Context, by, want *binding) error {
	want.spec.ConflictResolution, want.spec.Suspension = by.spec.ConflictResolution, by.spec.Suspension
	for _, r := range want.spec.RequiredBy {
		if r.Namespace == by.GetNamespace() && r.Name == by.GetName() {
			continue
		}
		other, err := getBinding(ctx, d.client, r.Namespace, r.Name)
		if err != nil {
			return err
		}
		if other == nil {
			continue
		}
		if other.spec.ConflictResolution != policyv1alpha1.ConflictOverwrite {
			want.spec.ConflictResolution = policyv1alpha1.ConflictAbort
		}
		if s := other.spec.Suspension; s != nil && ptr.Deref(s.Dispatching, false) {
			want.spec.Suspension = s
		}
	}
	return nil
}

// takeBack ends that a resource goes where another one needed it.
func (d *detector) takeBack(ctx context.Context, by, lent *binding, undo bool) error {
	if lent.GetDeletionTimestamp() != nil {
		return nil
	}
	others := without(lent.spec.RequiredBy, by)
	if len(others) > 0 || claimOf(lent) != (Key{}) {
		lent.spec.RequiredBy = others
		return client.IgnoreNotFound(d.client.Update(ctx, lent.Object, client.FieldOwner(FieldOwner)))
	}
	if undo {
		return d.undo(ctx, lent)
	}
	if lent.GetAnnotations()[AnnotationReleased] != "true" {
		lent.SetAnnotations(joined(lent.GetAnnotations(), nil, map[string]string{AnnotationReleased: "true"}))
		if err := d.client.Update(ctx, lent.Object, client.FieldOwner(FieldOwner)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(d.client.Delete(ctx, lent.Object))
}

func without(all []workv1alpha2.BindingSnapshot, by *binding) []workv1alpha2.BindingSnapshot {
	return slices.DeleteFunc(slices.Clone(all), func(s workv1alpha2.BindingSnapshot) bool {
		return s.Namespace == by.GetNamespace() && s.Name == by.GetName()
	})
}
