package objects

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// NewStatefulSetBackup is a ConfigMap with the StatefulSet of a foreign generation. The spec of such a generation is unknown,
// so the StatefulSet can be created again only from the backup.
func NewStatefulSetBackup(m *v1alpha2.Materialize, generation int64, set *unstructured.Unstructured) *unstructured.Unstructured {
	set = set.DeepCopy()
	delete(set.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "finalizers"} {
		unstructured.RemoveNestedField(set.Object, "metadata", field)
	}
	n := NamesOf(m)
	return SetOwner(m, ToUnstructured(KindConfigMap, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: n.Backup(generation), Labels: n.GenerationLabels(generation)},
		Data:       map[string]string{v1alpha2.RecordStatefulSet: string(toJSON(set))},
	}))
}

// ReadStatefulSetBackup is the StatefulSet in the backup of a generation, nil if the ConfigMap is not that.
func ReadStatefulSetBackup(m *v1alpha2.Materialize, generation int64, configMap *unstructured.Unstructured) *unstructured.Unstructured {
	data, _, _ := unstructured.NestedStringMap(configMap.Object, "data")
	set := &unstructured.Unstructured{}
	if _, recorded := data[v1alpha2.RecordSpec]; recorded || configMap.GetName() != NamesOf(m).Backup(generation) ||
		json.Unmarshal([]byte(data[v1alpha2.RecordStatefulSet]), set) != nil || set.GetNamespace() != m.Namespace || !isStatefulSetOf(m, generation, set) {
		return nil
	}
	return set
}

// isStatefulSetOf tells whether an object in a ConfigMap is the StatefulSet of a generation. Who writes ConfigMaps in the namespace
// could otherwise have the operator write any object, in any namespace.
func isStatefulSetOf(m *v1alpha2.Materialize, generation int64, object *unstructured.Unstructured) bool {
	return object.GroupVersionKind() == KindStatefulSet && object.GetName() == NamesOf(m).Generation(generation)
}
