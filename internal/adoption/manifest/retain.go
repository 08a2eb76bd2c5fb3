package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Retain is an object as it is to be written over the one that is there: all that the manifest says, nothing else that a
// user could have said, and what the cluster has assigned or others keep. Scaled tells that somebody in the cluster decides on
// its replicas.
func Retain(manifest, live *unstructured.Unstructured, marks map[string]string, scaled bool) *unstructured.Unstructured {
	want := ForMember(manifest)
	CopyServerMetadata(want, live)
	ours := model.OwnedKeys(live)
	want.SetLabels(model.MergeKeys(live.GetLabels(), ours.Labels, want.GetLabels(), marks))
	want.SetAnnotations(model.MergeKeys(live.GetAnnotations(), ours.Annotations, want.GetAnnotations()))
	if status, found := live.Object["status"]; found {
		want.Object["status"] = status
	}
	for _, path := range AssignedPaths[want.GroupVersionKind().GroupKind().String()] {
		keepField(want, live, path...)
	}
	if scaled {
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
		if IsServiceAccountToken(live) {
			CopyField(want, live, "data")
		}
	}
	return want
}

// keepField takes a field from the live object if the manifest does not say.
func keepField(want, live *unstructured.Unstructured, path ...string) {
	if _, found, err := unstructured.NestedFieldNoCopy(want.Object, path...); err == nil && !found {
		CopyField(want, live, path...)
	}
}

// CopyField takes a field from the live object.
func CopyField(want, live *unstructured.Unstructured, path ...string) {
	if value, found, err := unstructured.NestedFieldCopy(live.Object, path...); err == nil && found {
		_ = unstructured.SetNestedField(want.Object, value, path...)
	}
}

// keepNodePorts takes the node ports of a Service from the live one, port by port, where the manifest does not say.
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

// portKey is what the API server tells the ports of a Service apart by.
func portKey(port map[string]any) string { return fmt.Sprint(port["port"], "/", protocolOf(port)) }

// CopyServerMetadata makes an object the next version of the one that is there: what the server knows it by, and what others hold on to.
func CopyServerMetadata(want, live *unstructured.Unstructured) {
	want.SetResourceVersion(live.GetResourceVersion())
	want.SetUID(live.GetUID())
	want.SetOwnerReferences(live.GetOwnerReferences())
	want.SetFinalizers(live.GetFinalizers())
	want.SetCreationTimestamp(live.GetCreationTimestamp())
	want.SetManagedFields(live.GetManagedFields())
}
