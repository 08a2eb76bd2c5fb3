package resource

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
)

// Field numbers on the wire. The body has the same number in a state-of-the-world response and in a resource of an
// incremental one, so both send the same bytes.
const (
	fieldBody    protowire.Number = 2
	fieldVersion protowire.Number = 1
	fieldName    protowire.Number = 3
	// fieldResource is that of a resource in an incremental response.
	fieldResource protowire.Number = 2
	anyTypeURL    protowire.Number = 1
	anyValue      protowire.Number = 2
)

// New returns a resource. The value of its body becomes a part of the encoded resource, so that both take memory once.
func New(name, version string, body *anypb.Any) *Resource {
	r := &Resource{Name: name, Version: version, Body: body}
	encoded := encodeBody(body)
	body.Value = encoded[len(encoded)-len(body.GetValue()):]
	r.encoded = mem.SliceBuffer(encoded)
	r.label = mem.SliceBuffer(encodeLabel(name, version, len(encoded)))
	return r
}

// Encoded is the body as a field of a state-of-the-world response.
func (r *Resource) Encoded() mem.Buffer {
	if r.encoded == nil {
		return mem.SliceBuffer(encodeBody(r.Body))
	}
	return r.encoded
}

// Label is what precedes Encoded in an incremental response: the name, the version and the length of all.
func (r *Resource) Label() mem.Buffer {
	if r.label == nil {
		return mem.SliceBuffer(encodeLabel(r.Name, r.Version, r.Encoded().Len()))
	}
	return r.label
}

func encodeBody(body *anypb.Any) []byte {
	if body == nil {
		return nil
	}
	size := protowire.SizeTag(anyTypeURL) + protowire.SizeBytes(len(body.GetTypeUrl()))
	if len(body.GetValue()) > 0 {
		size += protowire.SizeTag(anyValue) + protowire.SizeBytes(len(body.GetValue()))
	}
	encoded := make([]byte, 0, protowire.SizeTag(fieldBody)+protowire.SizeBytes(size))
	encoded = protowire.AppendVarint(protowire.AppendTag(encoded, fieldBody, protowire.BytesType), uint64(size))
	encoded = appendText(encoded, anyTypeURL, body.GetTypeUrl())
	if len(body.GetValue()) == 0 {
		return encoded
	}
	return protowire.AppendBytes(protowire.AppendTag(encoded, anyValue, protowire.BytesType), body.GetValue())
}

func encodeLabel(name, version string, encoded int) []byte {
	size := encoded + protowire.SizeTag(fieldVersion) + protowire.SizeBytes(len(version)) + protowire.SizeTag(fieldName) + protowire.SizeBytes(len(name))
	label := make([]byte, 0, protowire.SizeTag(fieldResource)+protowire.SizeBytes(size)-encoded)
	label = protowire.AppendVarint(protowire.AppendTag(label, fieldResource, protowire.BytesType), uint64(size))
	return appendText(appendText(label, fieldVersion, version), fieldName, name)
}

func appendText(to []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), text)
}
