package work

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// healthOf is the health of an object by its status. That of most kinds is unknown.
func healthOf(object *unstructured.Unstructured) workv1alpha2.ResourceHealth {
	number := func(fields ...string) int64 {
		n, _, _ := unstructured.NestedInt64(object.Object, fields...)
		return n
	}
	healthy := func(is bool) workv1alpha2.ResourceHealth {
		if is {
			return workv1alpha2.ResourceHealthy
		}
		return workv1alpha2.ResourceUnhealthy
	}
	observed := number("status", "observedGeneration") >= object.GetGeneration()
	desired, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if !found {
		desired = 1
	}
	switch object.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps":
		return healthy(observed && number("status", "updatedReplicas") == desired && number("status", "availableReplicas") == desired)
	case "StatefulSet.apps":
		return healthy(observed && number("status", "updatedReplicas") == desired && number("status", "readyReplicas") == desired)
	case "ReplicaSet.apps":
		return healthy(observed && number("status", "availableReplicas") == desired)
	case "DaemonSet.apps":
		scheduled := number("status", "desiredNumberScheduled")
		return healthy(observed && number("status", "updatedNumberScheduled") == scheduled && number("status", "numberAvailable") == scheduled)
	case "PersistentVolumeClaim":
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		return healthy(phase == "Bound")
	case "Pod":
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		return healthy(phase == "Running" || phase == "Succeeded")
	}
	return workv1alpha2.ResourceUnknown
}
