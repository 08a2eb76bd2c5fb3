package takeover

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

func TestDraft(t *testing.T) {
	named := func(name, text string) *unstructured.Unstructured {
		o := adoptiontest.Object(t, text)
		o.SetName(name)
		return o
	}
	managed := func(name, hub string) *unstructured.Unstructured {
		o := named(name, "Deployment apps/v1")
		o.SetLabels(model.IdentityOf(hub, o).Labels())
		return o
	}
	of := func(kind, name string) passage.Object {
		version := map[string]string{"Deployment": "apps/v1", "Service": "v1"}[kind]
		return passage.Object{APIVersion: version, Kind: kind, Namespace: "shop", Name: name}
	}
	d := newDraft("west", "hub", []*unstructured.Unstructured{
		named("cart", "Deployment apps/v1\nmetadata: {labels: {app: cart}}\nspec: {replicas: 1}\nstatus: {replicas: 1}"),
		managed("again", "hub"),
		named("kept", "Deployment apps/v1"),
		managed("theirs", "other"),
		named("cart", "Service v1\nspec: {clusterIP: 10.0.0.1}"),
	}, present{of("Deployment", "again"): {LabelAdoptedFrom: "west"}, of("Deployment", "kept"): {LabelAdoptedFrom: "east"}})

	var written []map[string]any
	for _, template := range d.Templates {
		written = append(written, template.Object)
	}
	want := []map[string]any{
		named("cart", "Deployment apps/v1\nmetadata: {labels: {app: cart, fairlead.dev/adopted-from: west}}\nspec: {replicas: 1}").Object,
		named("cart", "Service v1\nmetadata: {labels: {fairlead.dev/adopted-from: west}}\nspec: {}").Object,
	}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]passage.Object{of("Deployment", "again")}, d.Present); diff != "" {
		t.Error(diff)
	}
	left := []Skipped{
		{of("Deployment", "kept"), "the hub has a resource of this name already"},
		{of("Deployment", "theirs"), "managed by another hub"},
	}
	if diff := cmp.Diff(left, d.Skipped); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Count{{"Deployment", 1, 1, 2}, {"Service", 1, 0, 0}}, d.Counts()); diff != "" {
		t.Error(diff)
	}

	p := d.policyFor("west", "shop", "adopted-west").(*policyv1alpha1.PropagationPolicy)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{LabelAdoptedFrom: "west"}}
	selectors := []policyv1alpha1.ResourceSelector{
		{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: selector}, {APIVersion: "v1", Kind: "Service", LabelSelector: selector},
	}
	if diff := cmp.Diff(selectors, p.Spec.ResourceSelectors); diff != "" {
		t.Error(diff)
	}
	if p.Spec.ConflictResolution != policyv1alpha1.ConflictOverwrite || !cmp.Equal(p.Spec.Placement.ClusterAffinity.ClusterNames, []string{"west"}) {
		t.Errorf("it says %+v", p.Spec)
	}
	before := []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Name: "mine"}, selectors[1]}
	if diff := cmp.Diff(append(before, selectors[0]), d.selectors("west", true, before)); diff != "" {
		t.Errorf("what the policy took before: %s", diff)
	}
	if p := d.policyFor("west", "", "adopted-west"); p != nil {
		t.Errorf("without cluster-scoped resources: %v", p)
	}
}

// Cluster-scoped resources have a policy of their own, which takes nothing else.
func TestDraftOfClusterScoped(t *testing.T) {
	role := adoptiontest.Object(t, "ClusterRole rbac.authorization.k8s.io/v1\nrules: []")
	role.SetNamespace("")
	d := newDraft("west", "hub", []*unstructured.Unstructured{role, adoptiontest.Object(t, "Service v1")}, present{})
	p := d.policyFor("west", "", "adopted-west").(*policyv1alpha1.ClusterPropagationPolicy)
	want := []policyv1alpha1.ResourceSelector{{
		APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelAdoptedFrom: "west"}},
	}}
	if diff := cmp.Diff(want, p.Spec.ResourceSelectors); diff != "" || p.Kind != "ClusterPropagationPolicy" || p.Namespace != "" || p.Labels[LabelAdoptedFrom] != "west" {
		t.Errorf("%+v (-want +got)\n%s", p.ObjectMeta, diff)
	}
	for name, c := range map[string]struct {
		draft Draft
		want  bool
	}{
		"a template":              {d, true},
		"one that is there":       {Draft{Present: []passage.Object{{Kind: "ClusterRole", Name: "it"}}}, true},
		"one that is left out":    {Draft{Skipped: []Skipped{{Object: passage.Object{Kind: "Node", Name: "it"}}}}, true},
		"nothing but a namespace": {newDraft("west", "hub", []*unstructured.Unstructured{adoptiontest.Object(t, "Service v1")}, present{}), false},
	} {
		if got := c.draft.HasClusterScoped(); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if own := specOf(d.policyFor("west", "shop", "adopted-west")).ResourceSelectors; len(own) != 1 || own[0].Kind != "Service" {
		t.Errorf("the policy of the namespace selects %v", own)
	}
}
