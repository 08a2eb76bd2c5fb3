package workload_test

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// condition of an Istio, as far as it speaks of the latest spec.
func condition(istio *v1.Istio, kind v1.ConditionType) metav1.Condition {
	if found := meta.FindStatusCondition(istio.Status.Conditions, string(kind)); found != nil && found.ObservedGeneration == istio.Generation {
		return *found
	}
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionUnknown}
}
