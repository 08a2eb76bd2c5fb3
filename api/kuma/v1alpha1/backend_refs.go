package v1alpha1

import (
	"bytes"
	"encoding/json"
)

// BackendRefs are backends that a proxy reaches, written as one object or as a list.
type BackendRefs struct {
	// Items are the backends.
	Items []ReachableBackendRef
	// One tells that they are written as one object.
	One bool
	// Malformed is what was written, where it is neither. No schema can refuse it, since it has no type there; and one
	// object that does not decode would stop an informer for all. It counts as a list of none.
	Malformed string
}

// UnmarshalJSON takes one object or a list, and never fails.
func (r *BackendRefs) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if bytes.HasPrefix(data, []byte("{")) {
		var one ReachableBackendRef
		if err := json.Unmarshal(data, &one); err == nil && one.Kind != "" {
			*r = BackendRefs{Items: []ReachableBackendRef{one}, One: true}
			return nil
		}
		*r = BackendRefs{Malformed: string(data)}
		return nil
	}
	items := []ReachableBackendRef{}
	if err := json.Unmarshal(data, &items); err != nil || items == nil {
		*r = BackendRefs{Malformed: string(data)}
		return nil
	}
	*r = BackendRefs{Items: items}
	return nil
}

// MarshalJSON writes the form that was read.
func (r BackendRefs) MarshalJSON() ([]byte, error) {
	switch {
	case r.Malformed != "":
		return []byte(r.Malformed), nil
	case r.One && len(r.Items) == 1:
		return json.Marshal(r.Items[0])
	case r.Items == nil:
		return []byte("[]"), nil
	default:
		return json.Marshal(r.Items)
	}
}
