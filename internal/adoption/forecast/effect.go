package forecast

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/manifest"
)

// Effect is the effect of a write on an existing object, without that of the ownership labels.
type Effect struct {
	Differences []Difference `json:"differences,omitempty"`
	// Pods is the number of pods of the object. Restarts holds when the pods are replaced, Deleted when they are deleted.
	Pods     int64 `json:"pods,omitempty"`
	Restarts bool  `json:"restarts"`
	Deleted  bool  `json:"goes,omitempty"`
	// Generation is the change of the generation, nil if there is none.
	Generation *Move `json:"generation,omitempty"`
	// Note is a further remark.
	Note string `json:"note,omitempty"`
}

// Move is from one generation to another.
type Move struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// effectOf compares an object with the result of a dry run.
func effectOf(before, after *unstructured.Unstructured) Effect {
	e := Effect{Differences: differences(before, after)}
	if from, to := before.GetGeneration(), after.GetGeneration(); from != to {
		e.Generation = &Move{from, to}
	}
	pods, runs := podsOf(before)
	e.Pods = pods
	template := !equality.Semantic.DeepEqual(field(before, "spec", "template"), field(after, "spec", "template"))
	switch {
	case !runs:
	case template && waitsToRestart(after) != "":
		e.Note = "pods are replaced only " + waitsToRestart(after)
	case template:
		e.Restarts = true
	case e.Generation != nil && onlyAnnotations(e.Differences):
		e.Note = "annotations change the generation, and no pod restarts"
	case e.Generation != nil:
		e.Note = "the generation changes, and no pod restarts"
	}
	return e
}

// podsOf is the number of pods of an object, if it is of a kind that replaces them when its pod template changes.
func podsOf(object *unstructured.Unstructured) (pods int64, runs bool) {
	switch object.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps", "StatefulSet.apps":
		if n := manifest.Replicas(object); n >= 0 {
			return int64(n), true
		}
		return 1, true
	case "DaemonSet.apps":
		n, _, _ := unstructured.NestedInt64(object.Object, "status", "desiredNumberScheduled")
		return n, true
	}
	return 0, false
}

// waitsToRestart is when a workload uses its new pod template, empty if immediately.
func waitsToRestart(object *unstructured.Unstructured) string {
	if paused, _, _ := unstructured.NestedBool(object.Object, "spec", "paused"); paused {
		return "when spec.paused of the workload is unset"
	}
	if kind, _, _ := unstructured.NestedString(object.Object, "spec", "updateStrategy", "type"); kind == "OnDelete" {
		return "when they are deleted, because updateStrategy is OnDelete"
	}
	return ""
}

func onlyAnnotations(all []Difference) bool {
	for _, d := range all {
		if !strings.HasPrefix(d.Field, "metadata.annotations") {
			return false
		}
	}
	return len(all) > 0
}

func field(object *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	return value
}
