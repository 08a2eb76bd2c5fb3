package certs_test

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// sentinel is a CRD that shows when the API server has taken in how other CRDs are converted. It takes in the changes of
// all CRDs one after the other: if it uses the latest default of the sentinel, it uses all that was written before.
type sentinel struct {
	client.Client
	namespace string
	crd       *apiextensionsv1.CustomResourceDefinition
	change    int64
}

func newSentinel(t testing.TB, c client.Client, namespace string) *sentinel {
	t.Helper()
	const group, plural, kind = "sentinel.test", "sentinels", "Sentinel"
	s := &sentinel{Client: c, namespace: namespace, crd: &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"change": {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("0")}},
					},
				}},
			}},
		},
	}}
	if err := c.Create(t.Context(), s.crd); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	// The API server has to use one default before it can show that it uses another.
	wait.Until(t, func(ctx context.Context) (err error) {
		s.change, err = s.used(ctx)
		return err
	})
	return s
}

// used is the default that the API server uses.
func (s *sentinel) used(ctx context.Context) (int64, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(s.crd.Spec.Group + "/v1")
	object.SetKind(s.crd.Spec.Names.Kind)
	object.SetNamespace(s.namespace)
	object.SetName("sentinel")
	if err := s.Create(ctx, object, client.DryRunAll); err != nil {
		return 0, err
	}
	change, _, err := unstructured.NestedInt64(object.Object, "change")
	return change, err
}

// takenIn waits until the API server uses all CRDs as they are now.
func (s *sentinel) takenIn(t testing.TB) {
	t.Helper()
	s.change++
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/change/default","value":%d}]`, s.change)
	if err := s.Patch(t.Context(), s.crd, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, func(ctx context.Context) error {
		change, err := s.used(ctx)
		if err == nil && change != s.change {
			err = fmt.Errorf("the API server uses change %d, and not %d", change, s.change)
		}
		return err
	})
}
