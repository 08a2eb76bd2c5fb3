package objects

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// NewStatefulSetBackup is a ConfigMap with the StatefulSet of a foreign generation, so that it can be created again. Its
// spec is unknown.
func NewStatefulSetBackup(m *v1alpha2.Materialize, generation int64, set *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if set == nil {
		return nil, fmt.Errorf("back up the StatefulSet of generation %d: it does not exist", generation)
	}
	set = set.DeepCopy()
	delete(set.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "finalizers"} {
		unstructured.RemoveNestedField(set.Object, "metadata", field)
	}
	text, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("back up the StatefulSet of generation %d: %w", generation, err)
	}
	n := NamesOf(m)
	configMap, err := ToUnstructured(KindConfigMap, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: n.Backup(generation), Labels: n.GenerationLabels(generation)},
		Data:       map[string]string{v1alpha2.RecordStatefulSet: string(text)},
	})
	if err != nil {
		return nil, err
	}
	return configMap, SetOwner(m, configMap)
}

// ReadStatefulSetBackup is the StatefulSet in a backup, nil if the ConfigMap is none.
func ReadStatefulSetBackup(configMap *unstructured.Unstructured) *unstructured.Unstructured {
	data, _, _ := unstructured.NestedStringMap(configMap.Object, "data")
	set := &unstructured.Unstructured{}
	if _, recorded := data[v1alpha2.RecordSpec]; recorded || json.Unmarshal([]byte(data[v1alpha2.RecordStatefulSet]), set) != nil {
		return nil
	}
	return set
}

// KeepSubjects adds the existing subjects of a RoleBinding to the desired ones.
func KeepSubjects(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	subjects, _, _ := unstructured.NestedSlice(want.Object, "subjects")
	before, _, err := unstructured.NestedSlice(have.Object, "subjects")
	if err != nil {
		return want
	}
	for _, subject := range before {
		if !slices.ContainsFunc(subjects, func(s any) bool { return equality.Semantic.DeepEqual(s, subject) }) {
			subjects = append(subjects, subject)
		}
	}
	want = want.DeepCopy()
	_ = unstructured.SetNestedSlice(want.Object, subjects, "subjects")
	return want
}

// KeepSelector replaces the selector of a desired Deployment by the existing one, which is immutable. Its pods carry the
// labels of both.
func KeepSelector(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	selector, found, err := unstructured.NestedMap(have.Object, "spec", "selector")
	if wanted, _, _ := unstructured.NestedMap(want.Object, "spec", "selector"); err != nil || !found || equality.Semantic.DeepEqual(selector, wanted) {
		return want
	}
	own, _, _ := unstructured.NestedStringMap(want.Object, "spec", "template", "metadata", "labels")
	given, _, _ := unstructured.NestedStringMap(selector, "matchLabels")
	want = want.DeepCopy()
	_ = unstructured.SetNestedMap(want.Object, selector, "spec", "selector")
	_ = unstructured.SetNestedStringMap(want.Object, labels.Merge(given, own), "spec", "template", "metadata", "labels")
	return want
}
