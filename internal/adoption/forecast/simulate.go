package forecast

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/adoption/template"
)

// hubState is what of the hub a policy has to do with.
type hubState struct {
	policies []*policy.Policy
	members  []policy.Member
	bindings map[client.ObjectKey]*model.Binding
	// proposed are resources that the hub does not have yet, or not like this.
	proposed map[model.TemplateKey]*unstructured.Unstructured
}

// observeHub reads it. The policy itself may be one that the hub does not have yet, or not like this.
func observeHub(ctx context.Context, hub client.Reader, subject *policy.Policy) (*hubState, error) {
	v := &hubState{bindings: map[client.ObjectKey]*model.Binding{}, proposed: map[model.TemplateKey]*unstructured.Unstructured{}}
	var err error
	if v.policies, err = policy.List(ctx, hub); err != nil {
		return nil, err
	}
	v.policies = slices.DeleteFunc(v.policies, func(p *policy.Policy) bool { return p.Key() == subject.Key() })
	v.policies = append(v.policies, subject)
	if v.members, err = template.ListMembers(ctx, hub); err != nil {
		return nil, err
	}
	all, err := model.ListBindings(ctx, hub, subject.Namespace)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		v.bindings[client.ObjectKeyFromObject(b.Object)] = b
	}
	return v, nil
}

// bindingOf a resource, nil if there is none.
func (v *hubState) bindingOf(t model.Template) *model.Binding {
	b := v.bindings[client.ObjectKey{Namespace: t.Namespace, Name: model.BindingName(t.GroupVersionKind(), t.Name)}]
	if b == nil || b.Spec.Resource.APIVersion != t.APIVersion {
		return nil
	}
	return b
}

// plannedBinding is a resource, and the binding that it gets.
type plannedBinding struct {
	template *unstructured.Unstructured
	binding  *model.Binding
}

// planBindings are of all that a policy takes, and of what that needs. Elsewhere are those that it selects and that go with others.
func (v *hubState) planBindings(ctx context.Context, hub client.Reader, subject *policy.Policy) (all []plannedBinding, elsewhere map[model.PolicyKey]int, err error) {
	found, err := v.listTemplates(ctx, hub, subject)
	if err != nil {
		return nil, nil, err
	}
	elsewhere, going := map[model.PolicyKey]int{}, map[model.TemplateKey]*plannedBinding{}
	for _, template := range found {
		t := model.TemplateOf(template)
		if template.GetDeletionTimestamp() != nil || subject.Match(t) == policy.NoMatch {
			continue
		}
		have := v.bindingOf(t)
		chosen := policy.Select(t, v.policies, model.ClaimOf(have))
		if chosen == nil || chosen.Key() != subject.Key() {
			if chosen != nil {
				elsewhere[chosen.Key()]++
			}
			continue
		}
		b, err := v.simulateBinding(template, subject, have)
		if err != nil {
			return nil, nil, err
		}
		going[model.KeyOf(template)] = &plannedBinding{template, b}
	}
	if subject.Spec.PropagateDeps {
		if err := v.addDependencies(ctx, hub, going); err != nil {
			return nil, nil, err
		}
	}
	for _, j := range going {
		all = append(all, *j)
	}
	slices.SortFunc(all, func(a, b plannedBinding) int {
		return cmp.Or(cmp.Compare(a.template.GetKind(), b.template.GetKind()), cmp.Compare(model.NameOf(a.template), model.NameOf(b.template)))
	})
	return all, elsewhere, nil
}

func (v *hubState) simulateBinding(object *unstructured.Unstructured, policy *policy.Policy, have *model.Binding) (*model.Binding, error) {
	replicas := int32(-1)
	if policy.Spec.Placement.Divides() {
		replicas = manifest.Replicas(object)
	}
	return template.DesiredBinding(model.TemplateOf(object), object.GetUID(), policy, v.members, replicas, have)
}

// listTemplates are all resources of the kinds that a policy selects.
func (v *hubState) listTemplates(ctx context.Context, hub client.Reader, policy *policy.Policy) ([]*unstructured.Unstructured, error) {
	all := map[model.TemplateKey]*unstructured.Unstructured{}
	for kind := range policy.Kinds() {
		err := forEach(ctx, hub, &unstructured.UnstructuredList{}, kind, policy.Namespace, func(o client.Object) {
			all[model.KeyOf(o)] = o.(*unstructured.Unstructured)
		})
		if err != nil {
			return nil, err
		}
	}
	for key, template := range v.proposed {
		if policy.Kinds()[key.Kind] {
			all[key] = template
		}
	}
	return slices.Collect(maps.Values(all)), nil
}

// forEach goes through all objects of a kind on the hub.
func forEach(ctx context.Context, hub client.Reader, list client.ObjectList, kind schema.GroupVersionKind, namespace string, see func(client.Object)) error {
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

// addDependencies plans the bindings of what others require, as far as the hub has it.
func (v *hubState) addDependencies(ctx context.Context, hub client.Reader, planned map[model.TemplateKey]*plannedBinding) error {
	find := func(r workv1alpha2.BindingSnapshot) *model.Binding {
		for _, p := range planned {
			if p.binding.GetNamespace() == r.Namespace && p.binding.GetName() == r.Name {
				return p.binding
			}
		}
		return v.bindings[client.ObjectKey{Namespace: r.Namespace, Name: r.Name}]
	}
	for _, by := range slices.Collect(maps.Values(planned)) {
		keys, err := manifest.Dependencies(by.template)
		if err != nil {
			return err
		}
		for _, key := range keys {
			dependency := planned[key]
			if dependency == nil {
				if dependency, err = v.dependencyBinding(ctx, hub, key); err != nil {
					return err
				}
				if dependency == nil {
					continue
				}
				planned[key] = dependency
			}
			dependency.binding = template.WithDependent(dependency.binding, by.binding, find)
		}
	}
	return nil
}

// dependencyBinding is the binding of a template that others require, but for where; nil if the hub does not have it.
func (v *hubState) dependencyBinding(ctx context.Context, hub client.Reader, key model.TemplateKey) (*plannedBinding, error) {
	object := v.proposed[key]
	if object == nil {
		object = &unstructured.Unstructured{}
		object.SetGroupVersionKind(key.Kind)
		if err := hub.Get(ctx, key.ObjectKey, object); err != nil || object.GetDeletionTimestamp() != nil {
			return nil, client.IgnoreNotFound(err)
		}
	}
	t := model.TemplateOf(object)
	if policy.IsClusterLocal(t) {
		return nil, nil
	}
	have := v.bindingOf(t)
	if chosen := policy.Select(t, v.policies, model.ClaimOf(have)); chosen != nil {
		b, err := v.simulateBinding(object, chosen, have)
		return &plannedBinding{object, b}, err
	}
	if have == nil {
		return &plannedBinding{object, template.NewDependency(t, object.GetUID())}, nil
	}
	released := have.Copy()
	model.Claim(released, model.PolicyKey{})
	return &plannedBinding{object, released}, nil
}
