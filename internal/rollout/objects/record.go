package objects

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
func NewRecord(m *v1alpha2.Materialize, hash string, g int64) (Record, error) {
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
	configuration, err := ToUnstructured(KindStatefulSet, set)
	return Record{kept, configuration}, err
}

// ReadRecord reads the record in a ConfigMap.
func ReadRecord(configMap *unstructured.Unstructured) (*Record, error) {
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
	n := NamesOf(m)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: n.Generation(g), Labels: n.GenerationLabels(g)},
		Immutable:  ptr.To(true),
		Data:       map[string]string{v1alpha2.RecordSpec: string(spec), v1alpha2.RecordStatefulSet: string(set)},
	}, nil
}

// ForGeneration returns the objects of a generation, in order of creation: first the record, from which the others can be
// created again. A record that exists is left out: it is immutable, and another Fairlead may have written it differently.
func ForGeneration(m *v1alpha2.Materialize, g int64, record Record, recorded bool) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	add := func(kind schema.GroupVersionKind, object metav1.Object) error {
		configuration, err := ToUnstructured(kind, object)
		if err != nil {
			return err
		}
		all = append(all, configuration)
		return SetOwner(m, configuration)
	}
	if !recorded {
		configMap, err := record.configMap(m, g)
		if err != nil {
			return nil, err
		}
		if err := add(KindConfigMap, configMap); err != nil {
			return nil, err
		}
	}
	for _, service := range []*corev1.Service{PubSubService(m, g), GenerationService(m, g)} {
		if err := add(KindService, service); err != nil {
			return nil, err
		}
	}
	set := record.StatefulSet.DeepCopy()
	return append(all, set), SetOwner(m, set)
}
