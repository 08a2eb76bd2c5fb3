package release

import (
	"bytes"
	"fmt"

	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"
)

// rendered is a post-renderer that replaces Helm's own rendering.
type rendered []*unstructured.Unstructured

// Run returns the rendered objects as YAML.
func (r rendered) Run(*bytes.Buffer) (*bytes.Buffer, error) {
	documents := &bytes.Buffer{}
	for _, object := range r {
		raw, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s as YAML: %w", describe(object), err)
		}
		documents.WriteString("---\n")
		documents.Write(raw)
	}
	return documents, nil
}

// writer replaces the writes of Helm's client.
type writer struct {
	*kube.Client
	session *session
	known   []*unstructured.Unstructured
}

// IsReachable saves a call before every action.
func (w *writer) IsReachable() error { return nil }

// Create is an update of nothing.
func (w *writer) Create(objects kube.ResourceList, _ ...kube.ClientCreateOption) (*kube.Result, error) {
	return w.Update(nil, objects)
}

// Update applies the objects in order, and then deletes other known objects of the release.
func (w *writer) Update(_, objects kube.ResourceList, _ ...kube.ClientUpdateOption) (*kube.Result, error) {
	result := &kube.Result{}
	wanted := map[identity]bool{}
	err := objects.Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		object := info.Object.(*unstructured.Unstructured)
		wanted[identify(object)] = true
		result.Updated.Append(info)
		return w.session.applyObject(w.session.ctx, object)
	})
	if err != nil {
		return result, err
	}
	for _, object := range removalOrder(w.known) {
		if wanted[identify(object)] {
			continue
		}
		if err := w.session.remove(w.session.ctx, object); err != nil {
			return result, err
		}
	}
	return result, nil
}
