package rollout

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// Generation holds the objects of one generation.
type Generation struct {
	Number int64
	// Record is nil if it was deleted, or if Fairlead did not create the generation.
	Record *objects.Record
	// Hash of the spec that it was created from: by the current algorithm, or as annotated on the StatefulSet if there is no
	// record.
	Hash string
	// StatefulSet is nil if it does not exist.
	StatefulSet *appsv1.StatefulSet
	// Foreign generations were created by another operator, before Fairlead managed the environment.
	Foreign bool
	// Backup is the StatefulSet of a foreign generation as it was before Fairlead stopped it. Nil: it was not stopped.
	Backup *unstructured.Unstructured
	// Objects of the generation that carry the label and the owner reference.
	Objects []*unstructured.Unstructured
	// Unlabelled objects belong to the generation by name only: another operator created them, or a client removed the
	// label.
	Unlabelled []*unstructured.Unstructured
}

// rolledOut tells whether all pods of a generation are ready and at the latest revision of its StatefulSet.
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

// podCount is nil if there is no StatefulSet.
func (g *Generation) podCount() *v1alpha2.PodCount {
	if g.StatefulSet == nil {
		return nil
	}
	status := g.StatefulSet.Status
	return &v1alpha2.PodCount{Ready: min(status.ReadyReplicas, status.UpdatedReplicas), Desired: ptr.Deref(g.StatefulSet.Spec.Replicas, 1)}
}

// isIdle tells whether no pod of a generation serves, or none will for long.
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

func (g *Generation) unlabelledStatefulSet() *unstructured.Unstructured {
	for _, object := range g.Unlabelled {
		if object.GroupVersionKind() == objects.KindStatefulSet {
			return object
		}
	}
	return nil
}
