package adoption

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// retain is an object as it is to be written over the one that is there: all that the manifest says, nothing else that a
// user could have said, and what the cluster has assigned or others keep. Scaled tells that somebody in the cluster decides on
// its replicas.
func retain(manifest, live *unstructured.Unstructured, marks map[string]string, scaled bool) *unstructured.Unstructured {
	want := sent(manifest)
	succeed(want, live)
	ours := ownKeys(live)
	want.SetLabels(joined(live.GetLabels(), ours.labels, want.GetLabels(), marks))
	want.SetAnnotations(joined(live.GetAnnotations(), ours.annotations, want.GetAnnotations()))
	if status, found := live.Object["status"]; found {
		want.Object["status"] = status
	}
	for _, path := range assignedPaths[want.GroupVersionKind().GroupKind().String()] {
		keep(want, live, path...)
	}
	if scaled {
		replace(want, live, "spec", "replicas")
	}
	switch want.GroupVersionKind().GroupKind().String() {
	case "Service":
		keepNodePorts(want, live)
	case "Job.batch":
		for _, label := range jobLabels {
			keep(want, live, "spec", "template", "metadata", "labels", label)
		}
	case "Secret":
		if isToken(live) {
			replace(want, live, "data")
		}
	}
	return want
}

// assignedPaths are what a cluster assigns where the manifest does not say.
var assignedPaths = map[string][][]string{
	"Service": {
		{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "ipFamilies"}, {"spec", "ipFamilyPolicy"},
		{"spec", "healthCheckNodePort"},
	},
	"PersistentVolumeClaim": {{"spec", "volumeName"}, {"spec", "storageClassName"}, {"spec", "volumeMode"}},
	"PersistentVolume":      {{"spec", "claimRef"}},
	"Pod":                   {{"spec", "nodeName"}},
	"Job.batch":             {{"spec", "selector"}},
	"ServiceAccount":        {{"secrets"}},
}

// keep takes a field from the live object if the manifest does not say.
func keep(want, live *unstructured.Unstructured, path ...string) {
	if _, found, err := unstructured.NestedFieldNoCopy(want.Object, path...); err == nil && !found {
		replace(want, live, path...)
	}
}

// replace takes a field from the live object.
func replace(want, live *unstructured.Unstructured, path ...string) {
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
			had[keyOf(port)] = port["nodePort"]
		}
	}
	ports, _, _ = unstructured.NestedSlice(want.Object, "spec", "ports")
	for _, p := range ports {
		if port, ok := p.(map[string]any); ok && port["nodePort"] == nil {
			if number, found := had[keyOf(port)]; found {
				port["nodePort"] = number
			}
		}
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(want.Object, ports, "spec", "ports")
	}
}

// keyOf is what the API server tells the ports of a Service apart by.
func keyOf(port map[string]any) string { return fmt.Sprint(port["port"], "/", protocolOf(port)) }

// joined are labels or annotations: those of others, but for the ones that were ours and are no longer asked for, and ours.
func joined(live map[string]string, before []string, ours ...map[string]string) map[string]string {
	all := maps.Clone(live)
	if all == nil {
		all = map[string]string{}
	}
	maps.DeleteFunc(all, func(key, _ string) bool { return slices.Contains(before, key) })
	for _, more := range ours {
		maps.Copy(all, more)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// succeed makes an object the next version of the one that is there: what the server knows it by, and what others hold on to.
func succeed(want, live *unstructured.Unstructured) {
	want.SetResourceVersion(live.GetResourceVersion())
	want.SetUID(live.GetUID())
	want.SetOwnerReferences(live.GetOwnerReferences())
	want.SetFinalizers(live.GetFinalizers())
	want.SetCreationTimestamp(live.GetCreationTimestamp())
	want.SetManagedFields(live.GetManagedFields())
}
