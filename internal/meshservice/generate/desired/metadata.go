package desired

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// annotationLabels lists the labels that Fairlead owns on a generated resource, so that obsolete ones can be told from
// those of others.
const annotationLabels = "fairlead.dev/labels"

// RecordLabels records on a resource which of its labels Fairlead owns, before it is created.
func RecordLabels(object metav1.Object) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationLabels] = strings.Join(slices.Sorted(maps.Keys(object.GetLabels())), ",")
	object.SetAnnotations(annotations)
}

// IsApplied says whether Fairlead has written a generated resource, rather than only taken it over from another control plane. One
// that Fairlead has not written is never deleted: Fairlead might not generate the same again.
func IsApplied(object metav1.Object) bool {
	_, recorded := object.GetAnnotations()[annotationLabels]
	return recorded
}

// MergeMetadata merges the desired metadata into a copy of the existing one. Labels and annotations of others stay.
func MergeMetadata(there, want metav1.Object) {
	labels, annotations := maps.Clone(there.GetLabels()), maps.Clone(there.GetAnnotations())
	for name := range strings.SplitSeq(annotations[annotationLabels], ",") {
		delete(labels, name)
	}
	there.SetLabels(mergeMaps(labels, want.GetLabels()))
	there.SetAnnotations(mergeMaps(annotations, want.GetAnnotations()))
	there.SetOwnerReferences(want.GetOwnerReferences())
}

func mergeMaps(into, from map[string]string) map[string]string {
	if into == nil {
		into = map[string]string{}
	}
	maps.Copy(into, from)
	return into
}

// Equal says whether two resources have the same JSON.
func Equal(a, b any) bool {
	one, err1 := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, other)
}
