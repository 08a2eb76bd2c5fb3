package desired

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// IsIntermediateOwner says whether the owner of a pod has an owner itself.
func IsIntermediateOwner(owner *metav1.OwnerReference) bool {
	return owner != nil && (owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.APIVersion, "apps/") ||
		owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/"))
}

// ConsumerOf returns the workload of a pod as Kind/name, given the owner of its owner.
func ConsumerOf(pod metav1.Object, ownersOwner *metav1.OwnerReference) string {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return kindPod + "/" + pod.GetName()
	case IsIntermediateOwner(owner) && ownersOwner != nil:
		owner = ownersOwner
	}
	return owner.Kind + "/" + owner.Name
}

// ConsumerIn returns the workload of a Dataplane as namespace/Kind/name; in universal the name of the Dataplane.
func ConsumerIn(dataplane *kumav1alpha1.Dataplane, where ZoneInfo) string {
	if where.IsUniversal() {
		return dataplane.Name
	}
	return dataplane.Namespace + "/" + cmp.Or(dataplane.Annotations[kumav1alpha1.AnnotationConsumer], kumav1alpha1.DataplaneKind+"/"+dataplane.Name)
}

func nameOf(consumer string) string {
	_, name, _ := strings.Cut(consumer, "/")
	return name
}
