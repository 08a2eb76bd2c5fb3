package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Retain is the desired object for an update of the live one: the manifest, the ownership labels, and from the live object the
// fields that the cluster assigns, and the labels and annotations of other clients. Anything else in the live object is removed.
// If autoscaled, the replicas are the live ones.
func Retain(manifest, live *unstructured.Unstructured, ownership map[string]string, autoscaled bool) *unstructured.Unstructured {
	want := ForMember(manifest)
	CopyServerFields(want, live)
	labels, annotations := model.OwnedKeys(live)
	want.SetLabels(model.MergeKeys(live.GetLabels(), labels, want.GetLabels(), ownership))
	want.SetAnnotations(model.MergeKeys(live.GetAnnotations(), annotations, want.GetAnnotations()))
	for _, path := range AssignedPaths[want.GroupVersionKind().GroupKind().String()] {
		keepField(want, live, path...)
	}
	if autoscaled {
		CopyField(want, live, "spec", "replicas")
	}
	switch want.GroupVersionKind().GroupKind().String() {
	case "Service":
		keepNodePorts(want, live)
	case "Job.batch":
		for _, label := range jobLabels {
			keepField(want, live, "spec", "template", "metadata", "labels", label)
		}
	case "Secret":
		if IsServiceAccountToken(want) && IsServiceAccountToken(live) {
			CopyField(want, live, "data")
		}
	}
	keepInjected(want, live)
	return want
}

// keepField copies a field from the live object if the manifest does not set it.
func keepField(want, live *unstructured.Unstructured, path ...string) {
	if _, found, err := unstructured.NestedFieldNoCopy(want.Object, path...); err == nil && !found {
		CopyField(want, live, path...)
	}
}

// CopyField copies a field from the live object, if it has one.
func CopyField(want, live *unstructured.Unstructured, path ...string) {
	if value, found, err := unstructured.NestedFieldCopy(live.Object, path...); err == nil && found {
		_ = unstructured.SetNestedField(want.Object, value, path...)
	}
}

// keepNodePorts copies the node ports of the live Service to the ports for which the manifest sets none.
func keepNodePorts(want, live *unstructured.Unstructured) {
	kind, _, _ := unstructured.NestedString(want.Object, "spec", "type")
	if kind != "NodePort" && kind != "LoadBalancer" {
		return
	}
	had := map[string]any{}
	ports, _, _ := unstructured.NestedSlice(live.Object, "spec", "ports")
	for _, p := range ports {
		if port, ok := p.(map[string]any); ok && port["nodePort"] != nil {
			had[portKey(port)] = port["nodePort"]
		}
	}
	ports, _, _ = unstructured.NestedSlice(want.Object, "spec", "ports")
	for _, p := range ports {
		if port, ok := p.(map[string]any); ok && port["nodePort"] == nil {
			if number, found := had[portKey(port)]; found {
				port["nodePort"] = number
			}
		}
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(want.Object, ports, "spec", "ports")
	}
}

// portKey is the list map key of the ports of a Service.
func portKey(port map[string]any) string { return fmt.Sprint(port["port"], "/", protocolOf(port)) }

// serverFields are the metadata of an object that an update must not change. The API server leaves managedFields as they are when an
// update has none, and does not have to read them once more.
var serverFields = []string{"resourceVersion", "uid", "ownerReferences", "finalizers", "creationTimestamp"}

// CopyServerFields copies the status and the metadata of the live object that an update must not change.
func CopyServerFields(want, live *unstructured.Unstructured) {
	if status, found := live.Object["status"]; found {
		want.Object["status"] = status
	}
	for _, field := range serverFields {
		unstructured.RemoveNestedField(want.Object, "metadata", field)
		CopyField(want, live, "metadata", field)
	}
	unstructured.RemoveNestedField(want.Object, "metadata", "managedFields")
}
