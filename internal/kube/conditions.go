package kube

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetConditions sets conditions that were observed at a generation. The time of one that does not change its status stays.
func SetConditions(conditions *[]metav1.Condition, generation int64, now time.Time, observed ...metav1.Condition) {
	for _, condition := range observed {
		condition.ObservedGeneration = generation
		condition.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(conditions, condition)
	}
}
