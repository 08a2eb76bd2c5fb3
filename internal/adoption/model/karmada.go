package model

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The marks by which Karmada finds the Work of an object in a cluster, and the binding of a Work. A permanent ID is chosen at random
// when Karmada creates the Work.
const (
	karmadaWorkID             = "work.karmada.io/permanent-id"
	karmadaWorkNamespace      = "work.karmada.io/namespace"
	karmadaWorkName           = "work.karmada.io/name"
	karmadaBindingNamespace   = "resourcebinding.karmada.io/namespace"
	karmadaBindingName        = "resourcebinding.karmada.io/name"
	karmadaClusterwideBinding = "clusterresourcebinding.karmada.io/name"
)

// karmadaMarks are the labels and annotations that control planes of Karmada put on the objects that they manage in a cluster.
// Those that users set on templates, and may have applied in a cluster along with them, are none.
var karmadaMarks = map[string][]string{
	"work.karmada.io":                     {"name", "namespace", "permanent-id"},
	"resourcebinding.karmada.io":          {"name", "namespace", "key", "permanent-id"},
	"clusterresourcebinding.karmada.io":   {"name", "key", "permanent-id"},
	"propagationpolicy.karmada.io":        {"name", "namespace", "permanent-id"},
	"clusterpropagationpolicy.karmada.io": {"name", "permanent-id"},
	"resourcetemplate.karmada.io":         {"uid", "generation", "managed-labels", "managed-annotations"},
}

// KarmadaMark is the first mark of Karmada that an object has, as "label KEY" or "annotation KEY"; empty if it has none.
func KarmadaMark(object metav1.Object) string {
	for _, marked := range []struct {
		as   string
		keys map[string]string
	}{{"annotation", object.GetAnnotations()}, {"label", object.GetLabels()}} {
		for _, key := range slices.Sorted(maps.Keys(marked.keys)) {
			if domain, name, _ := strings.Cut(key, "/"); slices.Contains(karmadaMarks[domain], name) {
				return marked.as + " " + key
			}
		}
	}
	return ""
}

// IsOfKarmadaWork tells whether Karmada has written an object for this very Work, before Fairlead took over from it. The objects of
// another control plane have other permanent IDs.
func IsOfKarmadaWork(object, work metav1.Object) bool {
	annotations, id := object.GetAnnotations(), work.GetLabels()[karmadaWorkID]
	return id != "" && object.GetLabels()[karmadaWorkID] == id &&
		annotations[karmadaWorkNamespace] == work.GetNamespace() && annotations[karmadaWorkName] == work.GetName()
}

// bindingPathOf is the path of the binding of a Work, which may be one that Karmada has made; empty if there is none.
func bindingPathOf(work metav1.Object) string {
	annotations := work.GetAnnotations()
	switch {
	case annotations[AnnotationBinding] != "":
		return annotations[AnnotationBinding]
	case annotations[karmadaBindingNamespace] != "" && annotations[karmadaBindingName] != "":
		return annotations[karmadaBindingNamespace] + "/" + annotations[karmadaBindingName]
	}
	return annotations[karmadaClusterwideBinding]
}
