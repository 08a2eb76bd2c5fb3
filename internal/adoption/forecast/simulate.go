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

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/adoption/template"
	"github.com/fairlead/fairlead/internal/passage"
)

// hubState is the part of the hub that a policy depends on.
type hubState struct {
	policies []*policy.Policy
	clusters map[string]*clusterv1alpha1.Cluster
	members  []policy.Member
	bindings map[client.ObjectKey]*model.Binding
	// byTemplate are the same by the ID of their template: see find.
	byTemplate map[string]*model.Binding
	// unknown is made by unknownStates.
	unknown map[string]passage.Reason
	// proposed are templates that the hub does not have yet, or in another version.
	proposed map[model.TemplateKey]*unstructured.Unstructured
}

// observeHub reads the hub. The policy itself may be one that the hub does not have yet, or in another version.
func observeHub(ctx context.Context, hub client.Reader, subject *policy.Policy) (*hubState, error) {
	v := &hubState{
		clusters: map[string]*clusterv1alpha1.Cluster{}, bindings: map[client.ObjectKey]*model.Binding{},
		proposed: map[model.TemplateKey]*unstructured.Unstructured{},
	}
	var err error
	if v.policies, err = policy.List(ctx, hub); err != nil {
		return nil, err
	}
	v.policies = slices.DeleteFunc(v.policies, func(p *policy.Policy) bool { return p.Key() == subject.Key() })
	v.policies = append(v.policies, subject)
	var clusters clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}
	for i := range clusters.Items {
		v.clusters[clusters.Items[i].Name] = &clusters.Items[i]
	}
	v.members = policy.MembersOf(clusters.Items)
	all, err := model.ListBindings(ctx, hub, subject.Namespace)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		v.bindings[client.ObjectKeyFromObject(b.Object)] = b
	}
	return v, nil
}

// find finds the binding of a resource, in any version of its kind; nil if there is none.
func (v *hubState) find(t model.Template) *model.Binding {
	if v.byTemplate == nil {
		v.byTemplate = map[string]*model.Binding{}
		for _, b := range v.bindings {
			for _, id := range model.TemplateIndexValues(b.Object) {
				v.byTemplate[id] = model.PreferredBinding(v.byTemplate[id], b)
			}
		}
	}
	return v.byTemplate[t.Key().ID()]
}

// setName names the planned binding of a resource as the operator does.
func (v *hubState) setName(t model.Template, planned *model.Binding) {
	if have := v.find(t); have != nil {
		planned.SetName(have.GetName())
		return
	}
	planned.SetName(t.Key().NewBinding(func(key client.ObjectKey) bool { return v.bindings[key] != nil }).Name)
}

// bindingOf a resource, nil if there is none.
func (v *hubState) bindingOf(t model.Template) *model.Binding {
	b := v.find(t)
	if b == nil || b.Spec.Resource.APIVersion != t.APIVersion {
		return nil
	}
	return b
}

// isTakenInOtherVersion tells whether the operator has bound a resource in another version of its kind, and leaves it so.
func (v *hubState) isTakenInOtherVersion(t model.Template) bool {
	return template.IsTakenInOtherVersion(template.Observed{Template: t, Exists: true, Policies: v.policies, Binding: v.find(t)})
}

// plannedBinding is a resource, and the binding that it gets.
type plannedBinding struct {
	template *unstructured.Unstructured
	binding  *model.Binding
}

// removedNotes are what bindings of another control plane lose, if any.
func (v *hubState) removedNotes(planned []plannedBinding) []string {
	var all []string
	for _, p := range planned {
		if note := policy.RemovedNote(v.bindings[client.ObjectKeyFromObject(p.binding.Object)], p.binding); note != "" {
			all = append(all, note)
		}
	}
	return all
}

// planBindings reads the templates that a policy selects, and plans their bindings.
func (v *hubState) planBindings(ctx context.Context, hub client.Reader, subject *policy.Policy) (all []plannedBinding, elsewhere map[model.PolicyKey]int, err error) {
	found, err := v.listTemplates(ctx, hub, subject)
	if err != nil {
		return nil, nil, err
	}
	return v.bindTemplates(found, subject, func(key model.TemplateKey) (*unstructured.Unstructured, error) { return v.getTemplate(ctx, hub, key) })
}

// getTemplateFunc gets a template of the hub, nil if there is none.
type getTemplateFunc func(model.TemplateKey) (*unstructured.Unstructured, error)

// bindTemplates plans the bindings of all templates that a policy takes, and of their dependencies. Elsewhere counts the templates
// that the policy selects and another one takes.
func (v *hubState) bindTemplates(found []*unstructured.Unstructured, subject *policy.Policy, get getTemplateFunc) (all []plannedBinding, elsewhere map[model.PolicyKey]int, err error) {
	elsewhere = map[model.PolicyKey]int{}
	planned := map[model.TemplateKey]*plannedBinding{}
	// A resource that the policy selects in two versions of its kind has one binding.
	bound := map[string]bool{}
	for _, template := range inSelectorOrder(found, subject) {
		t := model.TemplateOf(template)
		if template.GetDeletionTimestamp() != nil || subject.Match(t) == policy.NoMatch || bound[t.Key().ID()] {
			continue
		}
		if v.isTakenInOtherVersion(t) {
			if claim := model.ClaimOf(v.find(t)); claim != subject.Key() && claim != (model.PolicyKey{}) {
				elsewhere[claim]++
			}
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
		planned[model.KeyOf(template)], bound[t.Key().ID()] = &plannedBinding{template, b}, true
	}
	if err := v.addDependencies(planned, get); err != nil {
		return nil, nil, err
	}
	for _, p := range planned {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b plannedBinding) int {
		return cmp.Or(cmp.Compare(a.template.GetKind(), b.template.GetKind()), cmp.Compare(model.NameOf(a.template), model.NameOf(b.template)))
	})
	return all, elsewhere, nil
}

// inSelectorOrder sorts templates by the first selector of a policy for their kind.
func inSelectorOrder(found []*unstructured.Unstructured, p *policy.Policy) []*unstructured.Unstructured {
	first := map[schema.GroupVersionKind]int{}
	for i, s := range slices.Backward(p.Spec.ResourceSelectors) {
		first[schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)] = i
	}
	return slices.SortedStableFunc(slices.Values(found), func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(first[a.GroupVersionKind()], first[b.GroupVersionKind()])
	})
}

func (v *hubState) simulateBinding(object *unstructured.Unstructured, policy *policy.Policy, have *model.Binding) (*model.Binding, error) {
	content, err := template.ContentOf(object, policy)
	if err != nil {
		return nil, err
	}
	t := model.TemplateOf(object)
	planned, err := template.DesiredBinding(t, object.GetUID(), policy, v.members, content, have)
	if err != nil {
		return nil, err
	}
	v.setName(t, planned)
	return planned, nil
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
		return fmt.Errorf("the hub has no kind %s in %s: install its CRD on the hub, or correct spec.resourceSelectors of the policy", kind.Kind, kind.GroupVersion())
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
func (v *hubState) addDependencies(planned map[model.TemplateKey]*plannedBinding, get getTemplateFunc) error {
	bindings, requiredBy := maps.Clone(v.bindings), map[model.TemplateKey][]*model.Binding{}
	for _, by := range planned {
		bindings[client.ObjectKeyFromObject(by.binding.Object)] = by.binding
		if !by.binding.Spec.PropagateDeps {
			continue
		}
		for _, key := range manifest.Dependencies(by.template) {
			requiredBy[key] = append(requiredBy[key], by.binding)
		}
	}
	for key, by := range requiredBy {
		dependency := planned[key]
		if dependency == nil {
			var err error
			if dependency, err = v.dependencyBinding(key, get); err != nil {
				return err
			}
			if dependency == nil {
				continue
			}
			planned[key] = dependency
		}
		dependency.binding = template.WithDependents(dependency.binding, func(key client.ObjectKey) *model.Binding { return bindings[key] }, by...)
	}
	return nil
}

// getTemplate gets a template of the hub, or the proposed one.
func (v *hubState) getTemplate(ctx context.Context, hub client.Reader, key model.TemplateKey) (*unstructured.Unstructured, error) {
	if object := v.proposed[key]; object != nil {
		return object, nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(key.Kind)
	if err := hub.Get(ctx, key.ObjectKey, object); err != nil || object.GetDeletionTimestamp() != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}

// dependencyBinding is the binding of a template that others require, but for where; nil if the hub does not have the template.
func (v *hubState) dependencyBinding(key model.TemplateKey, get getTemplateFunc) (*plannedBinding, error) {
	object, err := get(key)
	if object == nil || err != nil {
		return nil, err
	}
	t := model.TemplateOf(object)
	if policy.IsExcluded(t) {
		return nil, nil
	}
	have := v.bindingOf(t)
	if chosen := policy.Select(t, v.policies, model.ClaimOf(have)); chosen != nil {
		b, err := v.simulateBinding(object, chosen, have)
		return &plannedBinding{object, b}, err
	}
	if have == nil {
		planned := template.NewDependency(t, object.GetUID())
		v.setName(t, planned)
		return &plannedBinding{object, planned}, nil
	}
	released := have.Copy()
	model.Claim(released, model.PolicyKey{})
	return &plannedBinding{object, released}, nil
}
