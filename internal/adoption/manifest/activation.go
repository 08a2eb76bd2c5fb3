package manifest

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// ActivationVersion has what a Lazy policy compares of a template. Fields of the spec that no client has set are left out, because
// another version of the API server adds some to all templates.
func ActivationVersion(template *unstructured.Unstructured) (string, error) {
	m, err := OfTemplate(template)
	if err != nil {
		return "", err
	}
	v := model.TemplateVersion{Version: versionOf(template, m), Metadata: Digest(m.Object["metadata"])}
	if generation := template.GetGeneration(); generation > 0 {
		v.Generation = fmt.Sprintf("%s/%d", template.GetUID(), generation)
	}
	if ContentOf(m) != nil {
		v.Content, err = dataWrites(template)
		return v.String(), err
	}
	delete(m.Object, "metadata")
	if err := RemoveNewDefaults(m, &unstructured.Unstructured{}, template); err != nil {
		return "", err
	}
	v.Content = Digest(m.Object)
	return v.String(), nil
}

// dataWrites changes when a client writes fields of a Secret other than its metadata, by managedFields; without any, whenever the
// Secret is written. It tells nothing about values.
func dataWrites(secret *unstructured.Unstructured) (string, error) {
	var writes []any
	for _, entry := range secret.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return "", fmt.Errorf("read managedFields of %s %s: %w", secret.GetKind(), secret.GetName(), err)
		}
		delete(fields, "f:metadata")
		if len(fields) > 0 {
			writes = append(writes, []any{entry.Manager, entry.Time, fields})
		}
	}
	if len(writes) == 0 {
		return Digest([]string{string(secret.GetUID()), secret.GetResourceVersion()}), nil
	}
	return Digest(writes), nil
}
