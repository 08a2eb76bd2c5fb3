package desired

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// annotationLabels lists the labels of a generated resource that are Fairlead's, so that one that is not wanted any more
// can be told from one of somebody else.
const annotationLabels = "fairlead.dev/labels"

// RecordLabels notes on a resource which of its labels are Fairlead's. A new one must be signed before it is made.
func RecordLabels(object metav1.Object) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationLabels] = strings.Join(slices.Sorted(maps.Keys(object.GetLabels())), ",")
	object.SetAnnotations(annotations)
}

// MergeMetadata gives the metadata of what is wanted to a copy of what is there. Labels and annotations of others stay.
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

// Equal says whether two resources are written alike.
func Equal(a, b any) bool {
	one, err1 := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, other)
}
