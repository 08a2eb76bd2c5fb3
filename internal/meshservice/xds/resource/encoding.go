package resource

import (
	"encoding/hex"
	"hash/fnv"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
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

// Marshal returns the resource of a message. The same content has the same bytes, and the version is a digest of them. What is
// sent, the value of the body included, is one piece of memory.
func Marshal(name string, m proto.Message) (*Resource, error) {
	body := &anypb.Any{TypeUrl: "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())}
	options := proto.MarshalOptions{Deterministic: true}
	value := options.Size(m)
	encodedSize := protowire.SizeTag(fieldBody) + protowire.SizeBytes(sizeOfBody(body.TypeUrl, value))
	labelSize := sizeOfLabel(name, hex.EncodedLen(digestSize), encodedSize)
	options.UseCachedSize = true
	all, err := options.MarshalAppend(appendBodyHead(make([]byte, labelSize, labelSize+encodedSize), body.TypeUrl, value), m)
	if err != nil {
		return nil, err
	}
	body.Value = all[len(all)-value:]
	r := &Resource{Name: name, Version: digestOf(body.Value), Body: body, encoded: mem.SliceBuffer(all[labelSize:])}
	r.label = mem.SliceBuffer(appendLabel(all[:0:labelSize], name, r.Version, encodedSize))
	return r, nil
}

const digestSize = 128 / 8

func digestOf(value []byte) string {
	h := fnv.New128a()
	h.Write(value)
	return hex.EncodeToString(h.Sum(make([]byte, 0, digestSize)))
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
		return mem.SliceBuffer(appendLabel(nil, r.Name, r.Version, r.Encoded().Len()))
	}
	return r.label
}

func encodeBody(body *anypb.Any) []byte {
	if body == nil {
		return nil
	}
	return append(appendBodyHead(nil, body.GetTypeUrl(), len(body.GetValue())), body.GetValue()...)
}

// sizeOfBody is the size of a body with a value of that size.
func sizeOfBody(url string, value int) int {
	size := protowire.SizeTag(anyTypeURL) + protowire.SizeBytes(len(url))
	if value > 0 {
		size += protowire.SizeTag(anyValue) + protowire.SizeBytes(value)
	}
	return size
}

// appendBodyHead appends all of a body that precedes its value.
func appendBodyHead(to []byte, url string, value int) []byte {
	to = protowire.AppendVarint(protowire.AppendTag(to, fieldBody, protowire.BytesType), uint64(sizeOfBody(url, value)))
	to = appendText(to, anyTypeURL, url)
	if value == 0 {
		return to
	}
	return protowire.AppendVarint(protowire.AppendTag(to, anyValue, protowire.BytesType), uint64(value))
}

// sizeOfResource is the size of a resource in an incremental response.
func sizeOfResource(name string, version, encoded int) int {
	return encoded + protowire.SizeTag(fieldVersion) + protowire.SizeBytes(version) + protowire.SizeTag(fieldName) + protowire.SizeBytes(len(name))
}

func sizeOfLabel(name string, version, encoded int) int {
	return protowire.SizeTag(fieldResource) + protowire.SizeBytes(sizeOfResource(name, version, encoded)) - encoded
}

func appendLabel(to []byte, name, version string, encoded int) []byte {
	size := sizeOfResource(name, len(version), encoded)
	to = protowire.AppendVarint(protowire.AppendTag(to, fieldResource, protowire.BytesType), uint64(size))
	return appendText(appendText(to, fieldVersion, version), fieldName, name)
}

func appendText(to []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), text)
}
