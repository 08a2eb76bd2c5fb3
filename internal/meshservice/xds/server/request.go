package server

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// A request is decoded before its sender is identified, and two bytes of it can become a hundred in memory: an empty extension
// of a node, for one. So only what is used is decoded: of the node its id, and of an error its message.

const (
	// maxNameBytes bounds names of resources, versions, nonces, URLs of types and ids of nodes: none of ours is longer.
	maxNameBytes = 1 << 10
	// maxErrorBytes is what is kept of the message of a NACK.
	maxErrorBytes = 4 << 10
	// nameCost is what a name takes besides its bytes, where it is subscribed to.
	nameCost = 256
	// decodedNameCost is what a name takes besides its bytes, where it is decoded.
	decodedNameCost = 48
)

// Unmarshal decodes a request.
func (c codec) Unmarshal(data mem.BufferSlice, into any) error {
	switch into.(type) {
	case *discovery.DiscoveryRequest, *discovery.DeltaDiscoveryRequest:
		buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buffer.Free()
		return decodeRequest(buffer.ReadOnlyData(), into, c.maxNames)
	}
	return c.CodecV2.Unmarshal(data, into)
}

// errNoUTF8 is that of a string that is none.
var errNoUTF8 = errors.New("a string is not UTF-8")

// decodeRequest decodes what is used of a request. Names of more than maxNames, by subscriptionCost, are refused.
func decodeRequest(text []byte, into any, maxNames int) error {
	names := nameDecoder{left: maxNames}
	switch r := into.(type) {
	case *discovery.DiscoveryRequest:
		return eachField(text, func(field protowire.Number, value []byte) (err error) {
			switch field {
			case 1:
				r.VersionInfo, err = short("version_info", value)
			case 2:
				r.Node, err = decodeNode(r.Node, value)
			case 3:
				r.ResourceNames, err = names.add(r.ResourceNames, value)
			case 4:
				r.TypeUrl, err = short("type_url", value)
			case 5:
				r.ResponseNonce, err = short("response_nonce", value)
			case 6:
				message, err := decodeError(r.GetErrorDetail().GetMessage(), value)
				r.ErrorDetail = status.New(codes.Unknown, message).Proto()
				return err
			}
			return err
		})
	case *discovery.DeltaDiscoveryRequest:
		return eachField(text, func(field protowire.Number, value []byte) (err error) {
			switch field {
			case 1:
				r.Node, err = decodeNode(r.Node, value)
			case 2:
				r.TypeUrl, err = short("type_url", value)
			case 3:
				r.ResourceNamesSubscribe, err = names.add(r.ResourceNamesSubscribe, value)
			case 4:
				r.ResourceNamesUnsubscribe, err = names.add(r.ResourceNamesUnsubscribe, value)
			case 5:
				r.InitialResourceVersions, err = names.addVersion(r.InitialResourceVersions, value)
			case 6:
				r.ResponseNonce, err = short("response_nonce", value)
			case 7:
				message, err := decodeError(r.GetErrorDetail().GetMessage(), value)
				r.ErrorDetail = status.New(codes.Unknown, message).Proto()
				return err
			}
			return err
		})
	}
	return fmt.Errorf("%T is no request", into)
}

// eachField calls take for each field of a message that is a string or a message. Others are skipped.
func eachField(text []byte, take func(field protowire.Number, value []byte) error) error {
	for len(text) > 0 {
		field, of, n := protowire.ConsumeTag(text)
		if n < 0 {
			return protowire.ParseError(n)
		}
		text = text[n:]
		if of != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, of, text); n < 0 {
				return protowire.ParseError(n)
			}
			text = text[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(text)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := take(field, value); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// decodeNode decodes the id of a node.
func decodeNode(node *core.Node, text []byte) (*core.Node, error) {
	if node == nil {
		node = &core.Node{}
	}
	return node, eachField(text, func(field protowire.Number, value []byte) (err error) {
		if field == 1 {
			node.Id, err = short("node.id", value)
		}
		return err
	})
}

// decodeError decodes the beginning of the message of an error, which may have one already.
func decodeError(message string, text []byte) (string, error) {
	err := eachField(text, func(field protowire.Number, value []byte) error {
		if field != 2 {
			return nil
		}
		if !utf8.Valid(value) {
			return errNoUTF8
		}
		message = strings.ToValidUTF8(string(value[:min(len(value), maxErrorBytes)]), "")
		return nil
	})
	return message, err
}

// nameDecoder decodes names, as many as there is room for.
type nameDecoder struct{ left int }

func (d *nameDecoder) add(names []string, value []byte) ([]string, error) {
	name, err := d.take(value)
	return append(names, name), err
}

func (d *nameDecoder) addVersion(versions map[string]string, entry []byte) (map[string]string, error) {
	var name, version []byte
	if err := eachField(entry, func(field protowire.Number, value []byte) error {
		switch field {
		case 1:
			name = value
		case 2:
			version = value
		}
		return nil
	}); err != nil {
		return versions, err
	}
	d.left -= len(version)
	key, err := d.take(name)
	if err != nil {
		return versions, err
	}
	text, err := short("the version of a resource", version)
	if err != nil {
		return versions, err
	}
	if versions == nil {
		versions = map[string]string{}
	}
	versions[key] = text
	return versions, nil
}

func (d *nameDecoder) take(value []byte) (string, error) {
	if d.left -= len(value) + nameCost; d.left < 0 {
		return "", errors.New("too many names of resources in a request: subscribe to fewer, or raise --mesh-max-request-bytes")
	}
	return short("the name of a resource", value)
}

func short(what string, value []byte) (string, error) {
	switch {
	case len(value) > maxNameBytes:
		return "", fmt.Errorf("%s has %d bytes, and may have %d", what, len(value), maxNameBytes)
	case !utf8.Valid(value):
		return "", errNoUTF8
	}
	return string(value), nil
}
