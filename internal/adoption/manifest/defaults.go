package manifest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// RemoveNewDefaults removes from a manifest the fields of its spec that no client has set, by the managedFields of its template, and
// that the manifest before did not have: a newer API server of the hub has added defaults to the template.
func RemoveNewDefaults(m, before, template *unstructured.Unstructured) error {
	owned, err := ownedFields(template)
	if err != nil || owned.Empty() {
		return err
	}
	now, _ := m.Object["spec"].(map[string]any)
	had, _ := before.Object["spec"].(map[string]any)
	removeUnowned(now, had, owned.WithPrefix(fieldElement("spec")))
	return nil
}

// removeUnowned removes the fields that were not there before and that are not owned, at any depth.
func removeUnowned(now, before map[string]any, owned *fieldpath.Set) {
	for field, value := range now {
		element := fieldElement(field)
		isOwned, inside := owned.Members.Has(element), owned.WithPrefix(element)
		switch had, found := before[field]; {
		case !found && !isOwned && inside.Empty():
			delete(now, field)
		case isOwned && inside.Empty():
			// All of the field belongs to its owner.
		case found:
			removeUnownedInside(value, had, inside)
		}
	}
}

// removeUnownedInside goes on with a field that was there before. The items of a list are compared by index, if there are as many as
// before; owners of items without a name are not known.
func removeUnownedInside(now, before any, owned *fieldpath.Set) {
	switch now := now.(type) {
	case map[string]any:
		if had, ok := before.(map[string]any); ok {
			removeUnowned(now, had, owned)
		}
	case []any:
		had, _ := before.([]any)
		for i := range now {
			item, _ := now[i].(map[string]any)
			name, named := item["name"].(string)
			if !named || len(had) != len(now) {
				return
			}
			if old, ok := had[i].(map[string]any); ok {
				removeUnowned(item, old, owned.WithPrefix(fieldpath.PathElement{Key: fieldpath.KeyByFields("name", name)}))
			}
		}
	}
}

func fieldElement(name string) fieldpath.PathElement { return fieldpath.PathElement{FieldName: &name} }
