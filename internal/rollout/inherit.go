package rollout

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// letIn gives what is wanted of a RoleBinding all whom it has let in so far.
func letIn(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	subjects, _, _ := unstructured.NestedSlice(want.Object, "subjects")
	before, _, err := unstructured.NestedSlice(have.Object, "subjects")
	if err != nil {
		return want
	}
	for _, subject := range before {
		if !slices.ContainsFunc(subjects, func(s any) bool { return equality.Semantic.DeepEqual(s, subject) }) {
			subjects = append(subjects, subject)
		}
	}
	want = want.DeepCopy()
	_ = unstructured.SetNestedSlice(want.Object, subjects, "subjects")
	return want
}

// inherit gives what is wanted of a Deployment the selector that it was made with, by whomever: nobody can change that. Its
// pods carry the labels of both.
func inherit(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	selector, found, err := unstructured.NestedMap(have.Object, "spec", "selector")
	if wanted, _, _ := unstructured.NestedMap(want.Object, "spec", "selector"); err != nil || !found || equality.Semantic.DeepEqual(selector, wanted) {
		return want
	}
	labels, _, _ := unstructured.NestedStringMap(want.Object, "spec", "template", "metadata", "labels")
	given, _, _ := unstructured.NestedStringMap(selector, "matchLabels")
	all := maps.Clone(given)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, labels)
	want = want.DeepCopy()
	_ = unstructured.SetNestedMap(want.Object, selector, "spec", "selector")
	_ = unstructured.SetNestedStringMap(want.Object, all, "spec", "template", "metadata", "labels")
	return want
}
