// Package manifest reads manifests, and has the API server try them without applying them.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/internal/cli/console"
)

// Manifest is an object as somebody wrote it down.
type Manifest struct {
	// Source is where it was read.
	Source string
	Object *unstructured.Unstructured
	// Others are the others in the same place.
	Others []*unstructured.Unstructured
}

// HasNamespace tells whether a namespace is beside the object.
func (m Manifest) HasNamespace(namespace string) bool {
	return slices.ContainsFunc(m.Others, func(o *unstructured.Unstructured) bool {
		return o.GetAPIVersion() == "v1" && o.GetKind() == "Namespace" && o.GetName() == namespace
	})
}

// Read finds the object of a kind and name among the documents of a file; - is the standard input.
func Read(stdin io.Reader, path string, kind schema.GroupKind, name string) (Manifest, error) {
	from, content, err := console.ReadFile(stdin, path)
	if err != nil {
		return Manifest{}, err
	}
	all, err := readObjects(bytes.NewReader(content))
	if err != nil {
		return Manifest{}, fmt.Errorf("read %s: %w", from, err)
	}
	var found *unstructured.Unstructured
	var others []string
	var beside []*unstructured.Unstructured
	for _, object := range all {
		switch {
		case object.GroupVersionKind().GroupKind() != kind:
			beside = append(beside, object)
		case object.GetName() != name:
			others = append(others, object.GetName())
		case found != nil:
			return Manifest{}, fmt.Errorf("read %s: there is more than one %s %s in it; leave one", from, kind.Kind, name)
		default:
			found = object
		}
	}
	switch {
	case found != nil:
		return Manifest{from, found, beside}, nil
	case len(others) > 0:
		return Manifest{}, fmt.Errorf("read %s: there is no %s %s in it, but %s", from, kind.Kind, name, strings.Join(others, ", "))
	}
	return Manifest{}, fmt.Errorf("read %s: there is no %s of %s in it", from, kind.Kind, kind.Group)
}

// readObjects are those in a stream of YAML or JSON documents, and in the lists among them.
func readObjects(in io.Reader) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		text, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		var content map[string]any
		if err := utiljson.Unmarshal(text, &content); err != nil {
			return nil, fmt.Errorf("document %d is not an object: %w", number, err)
		}
		object := &unstructured.Unstructured{Object: content}
		switch {
		case content == nil:
		case object.IsList():
			err = object.EachListItem(func(item runtime.Object) error {
				all = append(all, item.(*unstructured.Unstructured))
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("document %d: %w", number, err)
			}
		default:
			all = append(all, object)
		}
	}
}
