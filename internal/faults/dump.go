package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Dump describes objects of a cluster so that two worlds can be compared. Their
// content stays as it is, field owners and generation included; what differs by
// nature is removed or replaced: uid, resourceVersion, times, the random part of
// generated names.
type Dump struct {
	Kinds []schema.GroupVersionKind
	// In narrows down what is listed: a namespace, a label.
	In []client.ListOption
	// Names replaces what is particular to a world, such as its namespace.
	Names map[string]string
	// Scrub, if set, edits each object further before it is written out.
	Scrub func(*unstructured.Unstructured)
}

// Snapshot returns the objects as YAML, keyed by kind and name.
func (d Dump) Snapshot(ctx context.Context, c client.Reader) (map[string]string, error) {
	var objects []unstructured.Unstructured
	for _, kind := range d.Kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list, d.In...); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		objects = append(objects, list.Items...)
	}
	return d.describe(objects)
}

// describe is the part of Snapshot that needs no cluster.
func (d Dump) describe(objects []unstructured.Unstructured) (map[string]string, error) {
	s := newScrubber(d.Names, objects)
	texts := map[string][]string{}
	for i := range objects {
		obj := objects[i].DeepCopy()
		s.object(obj)
		if d.Scrub != nil {
			d.Scrub(obj)
		}
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s %s as YAML: %w", obj.GetKind(), obj.GetName(), err)
		}
		key := strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")
		key = obj.GroupVersionKind().GroupKind().String() + " " + key
		texts[key] = append(texts[key], string(text))
	}

	snapshot := map[string]string{}
	for key, same := range texts {
		// Objects with generated names are told apart by their content alone.
		slices.Sort(same)
		for i, text := range same {
			if len(same) > 1 {
				snapshot[fmt.Sprintf("%s #%d", key, i+1)] = text
			} else {
				snapshot[key] = text
			}
		}
	}
	return snapshot, nil
}
