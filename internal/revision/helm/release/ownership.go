package release

import (
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// The metadata by which Helm knows the objects of its releases.
const (
	managedByLabel             = "app.kubernetes.io/managed-by"
	managedByHelm              = "Helm"
	releaseNameAnnotation      = "meta.helm.sh/release-name"
	releaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
)

// setOwnership labels and annotates an object with its passage, release and owner. Helm would add its part of
// this metadata only when it applies; here the metadata is compared as well.
func setOwnership(object *unstructured.Unstructured, release types.NamespacedName, owner *metav1.OwnerReference) {
	object.SetLabels(labels.Merge(object.GetLabels(), labels.Set{
		v1.LabelPassage: v1.PassageRevision,
		managedByLabel:  managedByHelm,
	}))
	object.SetAnnotations(labels.Merge(object.GetAnnotations(), labels.Set{
		releaseNameAnnotation:      release.Name,
		releaseNamespaceAnnotation: release.Namespace,
	}))
	if owner != nil && !survivesUninstall(object) {
		object.SetOwnerReferences(append(object.GetOwnerReferences(), *owner))
	}
}

// survivesUninstall tells whether an object is kept when its release is uninstalled. CRDs always are: their custom resources
// would be deleted with them.
func survivesUninstall(object *unstructured.Unstructured) bool {
	return isCRD(object) || hasKeepPolicy(object)
}

func hasKeepPolicy(object metav1.Object) bool {
	return object.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy
}

func isCRD(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// isOwnedBy tells whether a live object belongs to the same release as a rendered one. The owner reference decides only where
// no release is annotated: two releases of one owner may follow each other.
func isOwnedBy(live metav1.Object, made *unstructured.Unstructured) bool {
	if by := Of(live); by.Name != "" {
		return by == Of(made)
	}
	return hasSameController(live, made)
}

// isInherited tells whether another controller has made a live object for the owner of a rendered one, before Fairlead took the
// owner over: such a controller may call its releases otherwise. All objects that Fairlead has made have the label of the passage.
func isInherited(live metav1.Object, made *unstructured.Unstructured) bool {
	return live.GetLabels()[v1.LabelPassage] == "" && hasSameController(live, made)
}

// hasSameController holds only for the controllers that releases have: what a record says of objects may be forged.
func hasSameController(live metav1.Object, made *unstructured.Unstructured) bool {
	is, was := metav1.GetControllerOfNoCopy(live), metav1.GetControllerOf(made)
	return isOfReleases(is) && isOfReleases(was) && is.UID == was.UID
}

func isOfReleases(owner *metav1.OwnerReference) bool {
	return owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group == v1.GroupVersion.Group
}

// Of is the release that an object is annotated with.
func Of(object metav1.Object) types.NamespacedName {
	annotations := object.GetAnnotations()
	return types.NamespacedName{Namespace: annotations[releaseNamespaceAnnotation], Name: annotations[releaseNameAnnotation]}
}

// holder names the owner of a live object.
func holder(live metav1.Object) string {
	if by := Of(live); by.Name != "" {
		return "Helm release " + by.String()
	}
	if controller := metav1.GetControllerOfNoCopy(live); controller != nil {
		return controller.Kind + " " + controller.Name
	}
	return noRelease
}

const noRelease = "no release"

// identity identifies an object across API versions.
type identity struct {
	group, kind string
	types.NamespacedName
}

func identify(object *unstructured.Unstructured) identity {
	kind := object.GroupVersionKind()
	return identity{kind.Group, kind.Kind, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
}
