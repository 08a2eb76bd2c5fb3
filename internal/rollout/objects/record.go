package objects

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// The kinds of the objects of a generation.
var (
	KindConfigMap   = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	KindService     = corev1.SchemeGroupVersion.WithKind("Service")
	KindStatefulSet = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
)

// Record is stored in the ConfigMap of a generation, so that neither a later spec nor a later Fairlead changes the
// generation.
type Record struct {
	// Materialize has only the spec and the annotation that the generation was created from.
	Materialize *v1alpha2.Materialize
	// StatefulSet as it was applied.
	StatefulSet *unstructured.Unstructured
}

// NewRecord makes the record of a generation from the current spec and its hash.
func NewRecord(m *v1alpha2.Materialize, hash string, g int64) *Record {
	kept := &v1alpha2.Materialize{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha2.GroupVersion.String(), Kind: v1alpha2.MaterializeKind},
		Spec:     *m.Spec.DeepCopy(),
	}
	// It concerns one rollout, and is not part of what runs.
	kept.Spec.ForcePromote = ""
	if forced, found := m.Annotations[v1alpha2.AnnotationForceRollout]; found {
		kept.Annotations = map[string]string{v1alpha2.AnnotationForceRollout: forced}
	}
	set := EnvironmentdStatefulSet(m, g)
	// Two specs that make the same StatefulSet are two rollouts.
	set.Annotations = map[string]string{v1alpha2.AnnotationRolloutHash: hash}
	return &Record{kept, ToUnstructured(KindStatefulSet, set)}
}

// ReadRecord reads the record of a generation in a ConfigMap. Nil: it has none, or one that cannot be read.
func ReadRecord(m *v1alpha2.Materialize, generation int64, configMap *unstructured.Unstructured) *Record {
	data, _, _ := unstructured.NestedStringMap(configMap.Object, "data")
	r := &Record{&v1alpha2.Materialize{}, &unstructured.Unstructured{}}
	for key, into := range map[string]any{v1alpha2.RecordSpec: r.Materialize, v1alpha2.RecordStatefulSet: r.StatefulSet} {
		if json.Unmarshal([]byte(data[key]), into) != nil {
			return nil
		}
	}
	if configMap.GetName() != NamesOf(m).Generation(generation) || !isStatefulSetOf(m, generation, r.StatefulSet) {
		return nil
	}
	return r
}

func (r *Record) configMap(m *v1alpha2.Materialize, g int64) *corev1.ConfigMap {
	n := NamesOf(m)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: n.Generation(g), Labels: n.GenerationLabels(g)},
		Immutable:  ptr.To(true),
		Data: map[string]string{
			v1alpha2.RecordSpec: string(toJSON(r.Materialize)), v1alpha2.RecordStatefulSet: string(toJSON(r.StatefulSet)),
		},
	}
}

// ForGeneration returns the objects of a generation, in order of creation: first the record, from which the others can be
// created again. A record that exists is left out: it is immutable, and another Fairlead may have written it differently.
func ForGeneration(m *v1alpha2.Materialize, g int64, record *Record, recorded bool) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	if !recorded {
		all = append(all, SetOwner(m, ToUnstructured(KindConfigMap, record.configMap(m, g))))
	}
	for _, service := range []*corev1.Service{PubSubService(m, g), GenerationService(m, g)} {
		all = append(all, SetOwner(m, ToUnstructured(KindService, service)))
	}
	return append(all, SetOwner(m, record.StatefulSet.DeepCopy()))
}
