package rollout

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// The kinds of what is made for a generation.
var (
	kindConfigMap   = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	kindService     = corev1.SchemeGroupVersion.WithKind("Service")
	kindStatefulSet = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
)

// Record is what the ConfigMap of a generation keeps: a later spec, or a later Fairlead, changes nothing about it.
type Record struct {
	// Materialize has no more than the spec and the annotation that the generation was made from.
	Materialize *v1alpha2.Materialize
	// StatefulSet as it was applied.
	StatefulSet *unstructured.Unstructured
}

// newRecord is that of a generation of the spec as it is now, whose hash is given.
func newRecord(m *v1alpha2.Materialize, hash string, g int64) (Record, error) {
	kept := &v1alpha2.Materialize{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: v1alpha2.MaterializeKind},
		Spec:     *m.Spec.DeepCopy(),
	}
	// It is about one rollout, and not part of what runs.
	kept.Spec.ForcePromote = ""
	if forced, found := m.Annotations[v1alpha2.AnnotationForceRollout]; found {
		kept.Annotations = map[string]string{v1alpha2.AnnotationForceRollout: forced}
	}
	set := environmentdSet(m, g)
	// Two specs can make the same StatefulSet, and are two rollouts all the same.
	set.Annotations = map[string]string{v1alpha2.AnnotationRolloutHash: hash}
	configuration, err := toUnstructured(kindStatefulSet, set)
	return Record{kept, configuration}, err
}

// readRecord is what a ConfigMap keeps.
func readRecord(configMap *unstructured.Unstructured) (*Record, error) {
	data, _, err := unstructured.NestedStringMap(configMap.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", configMap.GetName(), err)
	}
	r := &Record{&v1alpha2.Materialize{}, &unstructured.Unstructured{}}
	for key, into := range map[string]any{v1alpha2.RecordSpec: r.Materialize, v1alpha2.RecordStatefulSet: r.StatefulSet} {
		if err := json.Unmarshal([]byte(data[key]), into); err != nil {
			return nil, fmt.Errorf("read %s of ConfigMap %s: %w", key, configMap.GetName(), err)
		}
	}
	return r, nil
}

func (r Record) configMap(m *v1alpha2.Materialize, g int64) (*corev1.ConfigMap, error) {
	spec, err := json.Marshal(r.Materialize)
	if err != nil {
		return nil, fmt.Errorf("record the spec of generation %d: %w", g, err)
	}
	set, err := json.Marshal(r.StatefulSet)
	if err != nil {
		return nil, fmt.Errorf("record the StatefulSet of generation %d: %w", g, err)
	}
	n := namesOf(m)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: n.generation(g), Labels: n.generationLabels(g)},
		Immutable:  ptr.To(true),
		Data:       map[string]string{v1alpha2.RecordSpec: string(spec), v1alpha2.RecordStatefulSet: string(set)},
	}, nil
}

// Generation is what there is of one.
type Generation struct {
	Number int64
	// Record is nil where there is none: it was deleted, or it was not Fairlead that made the generation.
	Record *Record
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

// objectsOf is all that there should be of a generation, in the order in which it is made: the record first, from which
// the rest can be made again. One that is there is left out: it cannot be changed, and does not have to be as another
// Fairlead would write it.
func objectsOf(m *v1alpha2.Materialize, g int64, record Record, recorded bool) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	add := func(kind schema.GroupVersionKind, object client.Object) error {
		configuration, err := toUnstructured(kind, object)
		if err != nil {
			return err
		}
		all = append(all, configuration)
		return setOwner(m, configuration)
	}
	if !recorded {
		configMap, err := record.configMap(m, g)
		if err != nil {
			return nil, err
		}
		if err := add(kindConfigMap, configMap); err != nil {
			return nil, err
		}
	}
	for _, service := range []*corev1.Service{pubsubService(m, g), generationService(m, g)} {
		if err := add(kindService, service); err != nil {
			return nil, err
		}
	}
	set := record.StatefulSet.DeepCopy()
	return append(all, set), setOwner(m, set)
}
