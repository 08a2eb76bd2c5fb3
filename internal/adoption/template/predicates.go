package template

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// placementChanged leaves out everything about a cluster that has no say in what goes there.
var placementChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	},
}

// templateChanged leaves out the status of resources, as far as their kind tells it apart.
var templateChanged = predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
	UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
		a, b := e.ObjectOld, e.ObjectNew
		return b.Generation == 0 || a.Generation != b.Generation || a.UID != b.UID || b.DeletionTimestamp != nil ||
			!maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Annotations, b.Annotations)
	},
}
