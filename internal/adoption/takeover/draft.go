package takeover

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// Draft has the templates and the policy by which the hub would manage objects of a cluster.
type Draft struct {
	// NewNamespace holds if the namespace has to be created on the hub.
	NewNamespace bool
	// Templates will be created on the hub. Present were created there by an earlier run.
	Templates []*unstructured.Unstructured
	Present   []passage.Object
	// Skipped are not adopted, each for a reason.
	Skipped []Skipped
	// Policy takes over the objects in their cluster by these templates. It is nil if there are none.
	Policy *policyv1alpha1.PropagationPolicy
	// policyWritten holds if the hub has this policy already.
	policyWritten bool
}

// Complete tells whether the hub has all templates and the policy already.
func (d Draft) Complete() bool { return len(d.Templates) == 0 && d.policyWritten }

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

// selectors are the selectors before, and those that select the templates of a draft.
func (d Draft) selectors(cluster string, before []policyv1alpha1.ResourceSelector) []policyv1alpha1.ResourceSelector {
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
		add(t.GetAPIVersion(), t.GetKind())
	}
	for _, o := range d.Present {
		add(o.APIVersion, o.Kind)
	}
	return all
}

// policyFor is the policy that takes the templates of a draft to their cluster.
func (d Draft) policyFor(cluster, namespace, name string) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: policyv1alpha1.PropagationPolicyKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{LabelAdoptedFrom: cluster}},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors:  d.selectors(cluster, nil),
			Placement:          policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}},
			ConflictResolution: policyv1alpha1.ConflictOverwrite,
		},
	}
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
