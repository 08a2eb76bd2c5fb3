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
	// Malformed is what was written, where it is neither. No schema can refuse it, since the field has no type there, and
	// one object that does not decode would stop an informer for all. It counts as a list of none.
	Malformed string
}

// UnmarshalJSON takes one object or a list, and never fails.
func (r *BackendRefs) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	read := BackendRefs{One: bytes.HasPrefix(data, []byte("{"))}
	var err error
	if read.One {
		read.Items = make([]ReachableBackendRef, 1)
		err = unmarshalKnown(data, &read.Items[0])
	} else {
		err = unmarshalKnown(data, &read.Items)
	}
	if err != nil || read.Items == nil || !wellFormed(read.Items) {
		read = BackendRefs{Malformed: string(data)}
	}
	*r = read
	return nil
}

// unmarshalKnown refuses fields that are unknown: a ref with a misspelt one would reach something else than was meant.
func unmarshalKnown(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// wellFormed checks what the schema checks where it can see refs.
func wellFormed(refs []ReachableBackendRef) bool {
	for _, ref := range refs {
		switch ref.Kind {
		case MeshServiceKind, MeshMultiZoneServiceKind, MeshExternalServiceKind:
		default:
			return false
		}
		if ref.Port != nil && (*ref.Port < 1 || *ref.Port > 65535) {
			return false
		}
	}
	return true
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
