package adoption

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// specChanged leaves out what we write ourselves.
var specChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

// asked leaves out what we write ourselves of a policy: people ask for things in its spec and in its annotations.
var asked = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})

// clusterMoved leaves out everything about a cluster that has no say in what goes there.
var clusterMoved = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	},
}

// reachableAgain leaves out everything about a cluster but that it can be reached from now on.
var reachableAgain = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool { return !isReady(e.ObjectOld) && isReady(e.ObjectNew) },
}

func isReady(cluster client.Object) bool {
	c, ok := cluster.(*clusterv1alpha1.Cluster)
	return ok && meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady)
}

// meaningful leaves out the status of resources, as far as their kind tells it apart.
var meaningful = predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
	UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
		a, b := e.ObjectOld, e.ObjectNew
		return b.Generation == 0 || a.Generation != b.Generation || a.UID != b.UID || b.DeletionTimestamp != nil ||
			!maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Annotations, b.Annotations)
	},
}
