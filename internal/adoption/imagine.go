package adoption

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// hubView is what of the hub a policy has to do with.
type hubView struct {
	policies []*Policy
	members  []Member
	bindings map[client.ObjectKey]*binding
	// proposed are resources that the hub does not have yet, or not like this.
	proposed map[templateKey]*unstructured.Unstructured
}

// view reads it. The policy itself may be one that the hub does not have yet, or not like this.
func view(ctx context.Context, hub client.Reader, policy *Policy) (*hubView, error) {
	v := &hubView{bindings: map[client.ObjectKey]*binding{}, proposed: map[templateKey]*unstructured.Unstructured{}}
	var err error
	if v.policies, err = policies(ctx, hub); err != nil {
		return nil, err
	}
	v.policies = slices.DeleteFunc(v.policies, func(p *Policy) bool { return p.Key() == policy.Key() })
	v.policies = append(v.policies, policy)
	if v.members, err = joinedMembers(ctx, hub); err != nil {
		return nil, err
	}
	all, err := indexed(ctx, hub, policy.Namespace)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		v.bindings[client.ObjectKeyFromObject(b.Object)] = b
	}
	return v, nil
}

// bindingOf a resource, nil if there is none.
func (v *hubView) bindingOf(t Template) *binding {
	b := v.bindings[client.ObjectKey{Namespace: t.Namespace, Name: bindingName(t.gvk(), t.Name)}]
	if b == nil || b.spec.Resource.APIVersion != t.APIVersion {
		return nil
	}
	return b
}

// journey is a resource, and the binding that it gets.
type journey struct {
	template *unstructured.Unstructured
	binding  *binding
}

// journeys are of all that a policy takes, and of what that needs. Elsewhere are those that it selects and that go with others.
func (v *hubView) journeys(ctx context.Context, hub client.Reader, policy *Policy) (all []journey, elsewhere map[Key]int, err error) {
	found, err := v.templates(ctx, hub, policy)
	if err != nil {
		return nil, nil, err
	}
	elsewhere, going := map[Key]int{}, map[templateKey]*journey{}
	for _, template := range found {
		t := describe(template)
		if template.GetDeletionTimestamp() != nil || policy.fit(t) == unfit {
			continue
		}
		have := v.bindingOf(t)
		chosen := choose(t, v.policies, claimOf(have))
		if chosen == nil || chosen.Key() != policy.Key() {
			if chosen != nil {
				elsewhere[chosen.Key()]++
			}
			continue
		}
		b, err := v.imagined(template, policy, have)
		if err != nil {
			return nil, nil, err
		}
		going[keyOfTemplate(template)] = &journey{template, b}
	}
	if policy.Spec.PropagateDeps {
		if err := v.takeAlong(ctx, hub, going); err != nil {
			return nil, nil, err
		}
	}
	for _, j := range going {
		all = append(all, *j)
	}
	slices.SortFunc(all, func(a, b journey) int {
		return cmp.Or(cmp.Compare(a.template.GetKind(), b.template.GetKind()), cmp.Compare(nameOf(a.template), nameOf(b.template)))
	})
	return all, elsewhere, nil
}

func (v *hubView) imagined(template *unstructured.Unstructured, policy *Policy, have *binding) (*binding, error) {
	replicas := int32(-1)
	if policy.Spec.Placement.Divides() {
		replicas = replicasOf(template)
	}
	return intended(describe(template), template.GetUID(), policy, v.members, replicas, have)
}

// templates are all resources of the kinds that a policy selects.
func (v *hubView) templates(ctx context.Context, hub client.Reader, policy *Policy) ([]*unstructured.Unstructured, error) {
	all := map[templateKey]*unstructured.Unstructured{}
	for kind := range policy.kinds() {
		err := eachOf(ctx, hub, &unstructured.UnstructuredList{}, kind, policy.Namespace, func(o client.Object) {
			all[keyOfTemplate(o)] = o.(*unstructured.Unstructured)
		})
		if err != nil {
			return nil, err
		}
	}
	for key, template := range v.proposed {
		if policy.kinds()[key.kind] {
			all[key] = template
		}
	}
	return slices.Collect(maps.Values(all)), nil
}

// eachOf goes through all objects of a kind on the hub.
func eachOf(ctx context.Context, hub client.Reader, list client.ObjectList, kind schema.GroupVersionKind, namespace string, see func(client.Object)) error {
	list.GetObjectKind().SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := hub.List(ctx, list, client.InNamespace(namespace)); meta.IsNoMatchError(err) {
		return fmt.Errorf("the hub has no kind %s of %s: install its CRD on the hub, or correct spec.resourceSelectors of the policy", kind.Kind, kind.GroupVersion())
	} else if err != nil {
		return fmt.Errorf("list %s on the hub: %w", kind.Kind, err)
	}
	return meta.EachListItem(list, func(o runtime.Object) error {
		object := o.(client.Object)
		object.GetObjectKind().SetGroupVersionKind(kind)
		see(object)
		return nil
	})
}

// takeAlong adds what others need to the journeys, as far as the hub has it.
func (v *hubView) takeAlong(ctx context.Context, hub client.Reader, going map[templateKey]*journey) error {
	for _, by := range slices.Collect(maps.Values(going)) {
		keys, err := needs(by.template)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if going[key] == nil {
				j, err := v.needed(ctx, hub, key)
				if err != nil {
					return err
				}
				if j == nil {
					continue
				}
				going[key] = j
			}
			v.lend(by.binding, going[key].binding)
		}
	}
	return nil
}

// needed is the journey of a resource that something needs, but for where that needs it; nil if the hub does not have it.
func (v *hubView) needed(ctx context.Context, hub client.Reader, key templateKey) (*journey, error) {
	template := v.proposed[key]
	if template == nil {
		template = &unstructured.Unstructured{}
		template.SetGroupVersionKind(key.kind)
		if err := hub.Get(ctx, key.ObjectKey, template); err != nil || template.GetDeletionTimestamp() != nil {
			return nil, client.IgnoreNotFound(err)
		}
	}
	t := describe(template)
	if everyClusterHas(t) {
		return nil, nil
	}
	have := v.bindingOf(t)
	if chosen := choose(t, v.policies, claimOf(have)); chosen != nil {
		b, err := v.imagined(template, chosen, have)
		return &journey{template, b}, err
	}
	if have != nil {
		return &journey{template, have.copy()}, nil
	}
	b := newBinding(t.Namespace, bindingName(t.gvk(), t.Name))
	b.spec.Resource = workv1alpha2.ObjectReference{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
	b.spec.PreserveResourcesOnDeletion = ptr.To(true)
	return &journey{template, b}, nil
}

// lend has a resource go where another one needs it. What no policy takes is taken over only if all that need it are.
func (v *hubView) lend(by, to *binding) {
	snapshot := workv1alpha2.BindingSnapshot{Namespace: by.GetNamespace(), Name: by.GetName()}
	for _, c := range by.spec.Clusters {
		snapshot.Clusters = append(snapshot.Clusters, workv1alpha2.TargetCluster{Name: c.Name})
	}
	first := len(to.spec.RequiredBy) == 0
	to.spec.RequiredBy = append(without(to.spec.RequiredBy, by), snapshot)
	if claimOf(to) != (Key{}) {
		return
	}
	if first {
		to.spec.ConflictResolution = by.spec.ConflictResolution
	} else if by.spec.ConflictResolution != policyv1alpha1.ConflictOverwrite {
		to.spec.ConflictResolution = policyv1alpha1.ConflictAbort
	}
}

func describe(o client.Object) Template {
	kind := o.GetObjectKind().GroupVersionKind()
	return Template{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), Labels: o.GetLabels()}
}

func keyOfTemplate(o client.Object) templateKey {
	return templateKey{o.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(o)}
}
