package takeover

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// Draft has the templates and the policies by which the hub would manage objects of a cluster.
type Draft struct {
	// NewNamespace holds if the namespace has to be created on the hub.
	NewNamespace bool
	// Templates will be created on the hub. Present were created there by an earlier run.
	Templates []*unstructured.Unstructured
	Present   []passage.Object
	// Skipped are not adopted, each for a reason.
	Skipped []Skipped
	// Policies take over the objects in their cluster by these templates: a PropagationPolicy those of the namespace, and a
	// ClusterPropagationPolicy the cluster-scoped ones. There is none without templates.
	Policies []Policy
}

// Policy is one that a draft writes.
type Policy struct {
	// Object is a PropagationPolicy or a ClusterPropagationPolicy.
	Object client.Object
	// written holds if the hub has this policy already.
	written bool
}

// String names the policy: PropagationPolicy shop/adopted-west.
func (p Policy) String() string { return policy.Of(p.Object).Object().String() }

// isNamespaced holds for a PropagationPolicy.
func (p Policy) isNamespaced() bool { return p.Object.GetNamespace() != "" }

// Complete tells whether the hub has all templates and the policies already.
func (d Draft) Complete() bool {
	return len(d.Templates) == 0 && len(d.Policies) > 0 && !slices.ContainsFunc(d.Policies, func(p Policy) bool { return !p.written })
}

// HasClusterScoped tells whether a draft is about objects that are in no namespace.
func (d Draft) HasClusterScoped() bool {
	isClusterScoped := func(o passage.Object) bool { return o.Namespace == "" }
	return slices.ContainsFunc(d.Templates, func(t *unstructured.Unstructured) bool { return t.GetNamespace() == "" }) ||
		slices.ContainsFunc(d.Present, isClusterScoped) || slices.ContainsFunc(d.Skipped, func(s Skipped) bool { return isClusterScoped(s.Object) })
}

// Skipped is an object of a cluster that is not copied to the hub, and why.
type Skipped struct {
	Object passage.Object
	Why    string
}

// present has the labels of resources of the hub.
type present map[passage.Object]map[string]string

// newDraft decides about each object of a cluster.
func newDraft(cluster, hub string, found []*unstructured.Unstructured, has present) Draft {
	var d Draft
	for _, live := range found {
		object := model.ObjectOf(live)
		labels, there := has[object]
		why := skipReason(live, hub)
		switch {
		case there && labels[LabelAdoptedFrom] == cluster:
			d.Present = append(d.Present, object)
		case why != "":
			d.Skipped = append(d.Skipped, Skipped{object, why})
		case there:
			d.Skipped = append(d.Skipped, Skipped{object, "the hub has a resource of this name already"})
		default:
			template := cleanObject(live)
			template.SetLabels(model.MergeKeys(template.GetLabels(), nil, map[string]string{LabelAdoptedFrom: cluster}))
			d.Templates = append(d.Templates, template)
		}
	}
	return d
}

// selectors are the selectors before, and those that select the templates of a draft that are in a namespace, or in none.
func (d Draft) selectors(cluster string, namespaced bool, before []policyv1alpha1.ResourceSelector) []policyv1alpha1.ResourceSelector {
	all := slices.Clone(before)
	add := func(apiVersion, kind string) {
		for _, s := range all {
			if s.APIVersion == apiVersion && s.Kind == kind && s.LabelSelector != nil && s.LabelSelector.MatchLabels[LabelAdoptedFrom] == cluster {
				return
			}
		}
		all = append(all, policyv1alpha1.ResourceSelector{
			APIVersion: apiVersion, Kind: kind,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelAdoptedFrom: cluster}},
		})
	}
	for _, t := range d.Templates {
		if (t.GetNamespace() != "") == namespaced {
			add(t.GetAPIVersion(), t.GetKind())
		}
	}
	for _, o := range d.Present {
		if (o.Namespace != "") == namespaced {
			add(o.APIVersion, o.Kind)
		}
	}
	return all
}

// policyFor is the policy that takes the templates of a namespace, or those that are in none, to their cluster; nil if there are
// none.
func (d Draft) policyFor(cluster, namespace, name string) client.Object {
	selectors := d.selectors(cluster, namespace != "", nil)
	if len(selectors) == 0 {
		return nil
	}
	kind := metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: policyv1alpha1.PropagationPolicyKind}
	metadata := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{LabelAdoptedFrom: cluster}}
	spec := policyv1alpha1.PropagationSpec{
		ResourceSelectors:  selectors,
		Placement:          policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}},
		ConflictResolution: policyv1alpha1.ConflictOverwrite,
	}
	if namespace == "" {
		kind.Kind = policyv1alpha1.ClusterPropagationPolicyKind
		return &policyv1alpha1.ClusterPropagationPolicy{TypeMeta: kind, ObjectMeta: metadata, Spec: spec}
	}
	return &policyv1alpha1.PropagationPolicy{TypeMeta: kind, ObjectMeta: metadata, Spec: spec}
}

// specOf is the spec of a policy, to be changed.
func specOf(object client.Object) *policyv1alpha1.PropagationSpec {
	if p, ok := object.(*policyv1alpha1.ClusterPropagationPolicy); ok {
		return &p.Spec
	}
	return &object.(*policyv1alpha1.PropagationPolicy).Spec
}

// getPolicy gets the policy of the hub with the kind and name of another one.
func getPolicy(ctx context.Context, hub client.Reader, like client.Object) (client.Object, error) {
	var have client.Object = &policyv1alpha1.PropagationPolicy{}
	if like.GetNamespace() == "" {
		have = &policyv1alpha1.ClusterPropagationPolicy{}
	}
	err := hub.Get(ctx, client.ObjectKeyFromObject(like), have)
	have.GetObjectKind().SetGroupVersionKind(like.GetObjectKind().GroupVersionKind())
	return have, err
}

// Count is how many objects there are of a kind.
type Count struct {
	Kind                        string
	Templates, Present, LeftOut int
}

// Counts are what a draft has of each kind, by name.
func (d Draft) Counts() []Count {
	byKind := map[string]*Count{}
	of := func(kind string) *Count {
		if byKind[kind] == nil {
			byKind[kind] = &Count{Kind: kind}
		}
		return byKind[kind]
	}
	for _, t := range d.Templates {
		of(t.GetKind()).Templates++
	}
	for _, o := range d.Present {
		of(o.Kind).Present++
	}
	for _, o := range d.Skipped {
		of(o.Object.Kind).LeftOut++
	}
	var all []Count
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		all = append(all, *byKind[kind])
	}
	return all
}
