package model

import (
	"encoding/json"
	"maps"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// AnnotationReleasedClusters on a binding has the clusters that its template goes to no longer, because no template that goes there
// requires it, with what becomes of its object there: a JSON object of clusters and actions.
const AnnotationReleasedClusters = "fairlead.dev/released-clusters"

// ReleasedClusters are those in which no template requires that of a binding any more, with what becomes of its object there.
func ReleasedClusters(b *Binding) map[string]passage.Action {
	released := map[string]passage.Action{}
	if text := b.GetAnnotations()[AnnotationReleasedClusters]; json.Unmarshal([]byte(text), &released) != nil {
		return map[string]passage.Action{}
	}
	return released
}

// RecordReleased records on a binding what becomes of its object in those clusters that it no longer goes to.
func RecordReleased(b *Binding, clusters []workv1alpha2.TargetCluster, action passage.Action) {
	before := ReleasedClusters(b)
	released := maps.Clone(before)
	for _, c := range clusters {
		released[c.Name] = action
	}
	for _, c := range Targets(b) {
		delete(released, c.Name)
	}
	if maps.Equal(before, released) {
		return
	}
	ours := map[string]string{}
	if len(released) > 0 {
		// A map of strings can be encoded.
		text, _ := json.Marshal(released)
		ours[AnnotationReleasedClusters] = string(text)
	}
	b.SetAnnotations(MergeKeys(b.GetAnnotations(), []string{AnnotationReleasedClusters}, ours))
}
