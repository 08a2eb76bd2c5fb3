package istio

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// sailOperator is the field manager of a Sail Operator. It writes what the user asks for into an IstioRevision, and besides the
// images of its own build for that version, and the values of profiles.
const sailOperator = "sail-operator"

// inheritedFields is a patch of the managed fields of a revision that a Sail Operator has made, nil if none is needed. What the
// Istio asks for is Fairlead's from now on. The rest stays as long as the version does, because without it istiod would restart,
// and goes with the next version, which these images are not of.
func inheritedFields(have *v1.IstioRevision, want v1.IstioRevisionSpec) ([]byte, error) {
	managed := have.DeepCopy()
	if want.Version != have.Spec.Version {
		if err := csaupgrade.UpgradeManagedFields(managed, sets.New(sailOperator), v1.FieldOwner); err != nil {
			return nil, fmt.Errorf("take over the fields of the Sail Operator: %w", err)
		}
	} else if err := removeFields(managed.ManagedFields, want); err != nil {
		return nil, err
	}
	before, err := json.Marshal(have.ManagedFields)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(managed.ManagedFields)
	if err != nil || bytes.Equal(before, after) {
		return nil, err
	}
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": managed.ManagedFields},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": have.ResourceVersion},
	})
}

// removeFields takes the fields of a spec from those of the Sail Operator.
func removeFields(entries []metav1.ManagedFieldsEntry, spec v1.IstioRevisionSpec) error {
	text, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	value, err := typed.DeducedParseableType.FromYAML(typed.YAMLObject(text))
	if err != nil {
		return fmt.Errorf("read the fields of a spec: %w", err)
	}
	ours, err := value.ToFieldSet()
	if err != nil {
		return fmt.Errorf("read the fields of a spec: %w", err)
	}
	for i := range entries {
		entry := &entries[i]
		if entry.Manager != sailOperator || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var theirs fieldpath.Set
		if err := theirs.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return fmt.Errorf("read the fields of the Sail Operator: %w", err)
		}
		left := theirs.Difference(ours)
		if left.Equals(&theirs) {
			continue
		}
		raw, err := left.ToJSON()
		if err != nil {
			return fmt.Errorf("write the fields of the Sail Operator: %w", err)
		}
		entry.FieldsV1.SetRawBytes(raw)
	}
	return nil
}
