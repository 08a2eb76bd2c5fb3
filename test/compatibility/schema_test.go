package compatibility

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fairlead/fairlead/internal/crds"
)

// kubectl explain is the reference that is always at hand: no field may be silent there.
func TestStoryEveryFieldIsExplained(t *testing.T) {
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		for _, version := range crd.Spec.Versions {
			properties := version.Schema.OpenAPIV3Schema.Properties
			for _, name := range []string{"spec", "status"} {
				if property, found := properties[name]; found {
					expectExplained(t, crd.Spec.Names.Kind+" "+version.Name+": "+name, property)
				}
			}
		}
	}
}

func expectExplained(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if schema.Description == "" {
		t.Errorf("%s has no description", path)
	}
	if schema.Items != nil {
		schema = *schema.Items.Schema
	}
	for name, property := range schema.Properties {
		expectExplained(t, path+"."+name, property)
	}
}
