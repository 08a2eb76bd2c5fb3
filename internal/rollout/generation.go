package rollout

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// Generation is what there is of one.
type Generation struct {
	Number int64
	// Record is nil where there is none: it was deleted, or it was not Fairlead that made the generation.
	Record *objects.Record
	// Hash of the spec that it was made from: by today's algorithm, or as the StatefulSet has it where there is no record.
	Hash string
	// StatefulSet is nil where there is none.
	StatefulSet *appsv1.StatefulSet
	// Foreign generations were made by somebody else, before Fairlead looked after the environment.
	Foreign bool
	// Inherited is the StatefulSet of such a one as it was before Fairlead ended it. Nil: it did not.
	Backup *unstructured.Unstructured
	// Objects that belong to it and to the environment.
	Objects []*unstructured.Unstructured
	// Strays belong to it without a label to tell: somebody else has made them, or has taken it away.
	Unlabelled []*unstructured.Unstructured
}

// rolledOut tells whether all pods of a generation are ready, and of the latest revision of its StatefulSet.
func (g *Generation) rolledOut() bool {
	if g == nil || g.StatefulSet == nil || !g.StatefulSet.DeletionTimestamp.IsZero() {
		return false
	}
	set := g.StatefulSet
	want := ptr.Deref(set.Spec.Replicas, 1)
	return set.Status.ObservedGeneration >= set.Generation && set.Status.Replicas == want &&
		set.Status.ReadyReplicas == want && set.Status.UpdatedReplicas == want &&
		set.Status.CurrentRevision == set.Status.UpdateRevision
}

// podCount is nil where there is no StatefulSet.
func (g *Generation) podCount() *v1alpha2.PodCount {
	if g.StatefulSet == nil {
		return nil
	}
	status := g.StatefulSet.Status
	return &v1alpha2.PodCount{Ready: min(status.ReadyReplicas, status.UpdatedReplicas), Desired: ptr.Deref(g.StatefulSet.Spec.Replicas, 1)}
}

// idle tells whether no pod of a generation can serve, or none will for long.
func (g *Generation) isIdle() bool {
	return g.StatefulSet == nil || !g.StatefulSet.DeletionTimestamp.IsZero() || g.StatefulSet.Status.ReadyReplicas == 0
}

func (g *Generation) find(key passage.Object) *unstructured.Unstructured {
	for _, object := range g.Objects {
		if objects.Identity(object) == key {
			return object
		}
	}
	return nil
}

// unlabelledStatefulSet is nil where there is none.
func (g *Generation) unlabelledStatefulSet() *unstructured.Unstructured {
	for _, object := range g.Unlabelled {
		if object.GroupVersionKind() == objects.KindStatefulSet {
			return object
		}
	}
	return nil
}
