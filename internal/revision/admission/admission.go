// Package admission holds the admission policies that warn who deletes an Istio or an IstioRevisionTag in use. The chart installs
// them; an operator that runs outside a cluster installs them itself.
package admission

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
)

//go:embed policies.yaml
var policies []byte

// Policies are the policies and their bindings.
func Policies() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(policies), len(policies))
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the admission policies: %w", err)
		}
		objects = append(objects, object)
	}
}

// Install applies the policies that are missing or differ. The operator may, because Istio's charts have such policies too. The
// reader must not be a cache.
func Install(ctx context.Context, c client.Client, reader client.Reader) error {
	objects, err := Policies()
	if err != nil {
		return err
	}
	for _, object := range objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GroupVersionKind())
		live, err := kube.GetIfExists(ctx, reader, client.ObjectKeyFromObject(object), live)
		if err != nil {
			return err
		}
		if live != nil && kube.FirstDifference(object, live) == "" {
			continue
		}
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(v1.FieldOwner), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Uninstall deletes the policies. Those of the chart have other names.
func Uninstall(ctx context.Context, c client.Client) error {
	objects, err := Policies()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
