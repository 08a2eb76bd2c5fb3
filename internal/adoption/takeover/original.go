package takeover

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// LabelAdoptedFrom has the cluster that a resource of the hub was copied from. Policies select by it; no cluster sees it.
const LabelAdoptedFrom = "fairlead.dev/adopted-from"

// cleanObject is a live object without the fields that the API server and controllers have set.
func cleanObject(live *unstructured.Unstructured) *unstructured.Unstructured {
	annotations := manifest.UserKeys(live.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool { return manifest.IsAssignedAnnotation(key) })
	o := manifest.WithUserMetadata(live, annotations)
	removeAssigned(o)
	return o
}

// removeAssigned removes the fields that a cluster assigns, even if a user has set one to the same value: a takeover keeps them.
func removeAssigned(o *unstructured.Unstructured) {
	kind := o.GroupVersionKind().GroupKind().String()
	if kind == "Service" && manifest.IsHeadless(o) {
		unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
	}
	manifest.RemoveAssigned(o, func(...any) bool { return true })
	switch kind {
	case "Service":
		unstructured.RemoveNestedField(o.Object, "spec", "ipFamilies")
		unstructured.RemoveNestedField(o.Object, "spec", "ipFamilyPolicy")
	case "PersistentVolume":
		unstructured.RemoveNestedField(o.Object, "spec", "claimRef")
	}
}

// skipReason is why an object of a cluster is not adopted by a hub, empty if it is.
func skipReason(live *unstructured.Unstructured, hub string) string {
	switch owner := model.IdentityOf(hub, live).OwnershipOf(live); {
	case live.GetDeletionTimestamp() != nil:
		return "the object is being deleted"
	case owner == model.ManagedByAnotherHub:
		return "managed by another hub"
	case owner == model.ManagedByKarmada:
		return "managed by another control plane: " + model.KarmadaMark(live)
	case owner != model.Unmanaged:
		return "managed by this hub already"
	}
	if by := metav1.GetControllerOf(live); by != nil {
		return "controlled by " + by.Kind + " " + by.Name
	}
	if policy.IsExcluded(model.TemplateOf(live)) {
		return "local to each cluster"
	}
	switch kind := live.GroupVersionKind(); {
	case kind.Group == "admissionregistration.k8s.io" || kind.Group == "apiregistration.k8s.io":
		return "the copy would be in force on the hub"
	case kind.GroupKind().String() == "Node":
		return "local to each cluster"
	case kind.GroupKind().String() != "Secret":
		return ""
	}
	switch kind, _, _ := unstructured.NestedString(live.Object, "type"); {
	case manifest.IsServiceAccountToken(live):
		return "token of a ServiceAccount"
	case kind == "bootstrap.kubernetes.io/token":
		return "bootstrap token of the cluster"
	case kind == "helm.sh/release.v1":
		return "release record of Helm"
	}
	return ""
}
