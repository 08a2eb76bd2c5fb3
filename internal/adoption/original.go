package adoption

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LabelAdoptedFrom has the cluster that a resource of the hub was copied from. Policies select by it; no cluster sees it.
const LabelAdoptedFrom = "fairlead.dev/adopted-from"

// originalOf is a resource as its user may have written it, from one that runs in a cluster: without what servers and
// controllers have set.
func originalOf(live *unstructured.Unstructured) *unstructured.Unstructured {
	o := live.DeepCopy()
	unstructured.RemoveNestedField(o.Object, "status")
	metadata := map[string]any{"name": live.GetName()}
	if namespace := live.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	if labels := foreign(live.GetLabels()); len(labels) > 0 {
		metadata["labels"] = anyMap(labels)
	}
	annotations := foreign(live.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool { return assignedByCluster(key) })
	if len(annotations) > 0 {
		metadata["annotations"] = anyMap(annotations)
	}
	o.Object["metadata"] = metadata
	forgetAssigned(o)
	return o
}

// forgetAssigned removes what a cluster assigns. Nobody can tell it from what a user has set to the same value, and a takeover
// keeps it.
func forgetAssigned(o *unstructured.Unstructured) {
	kind := o.GroupVersionKind().GroupKind().String()
	if kind == "Service" && headless(o) {
		unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
	}
	forget(o, func(...any) bool { return true })
	switch kind {
	case "Service":
		unstructured.RemoveNestedField(o.Object, "spec", "ipFamilies")
		unstructured.RemoveNestedField(o.Object, "spec", "ipFamilyPolicy")
	case "PersistentVolume":
		unstructured.RemoveNestedField(o.Object, "spec", "claimRef")
	}
}

// unadoptable is why a resource of a cluster is not for a hub to manage, empty if it is. Hub is the one that asks.
func unadoptable(live *unstructured.Unstructured, hub string) string {
	switch owner := identityOf(hub, live).of(live); {
	case live.GetDeletionTimestamp() != nil:
		return "it is being deleted"
	case owner == anotherHubs:
		return "another hub manages it"
	case owner != nobodys:
		return "this hub manages it already"
	}
	if by := metav1.GetControllerOf(live); by != nil {
		return by.Kind + " " + by.Name + " controls it"
	}
	if everyClusterHas(describe(live)) {
		return "every cluster has one of its own"
	}
	if live.GroupVersionKind().GroupKind().String() != "Secret" {
		return ""
	}
	switch kind, _, _ := unstructured.NestedString(live.Object, "type"); {
	case isToken(live):
		return "it is the token of a ServiceAccount"
	case kind == "bootstrap.kubernetes.io/token":
		return "it is a token of the cluster itself"
	case kind == "helm.sh/release.v1":
		return "it is a record of Helm's"
	}
	return ""
}
