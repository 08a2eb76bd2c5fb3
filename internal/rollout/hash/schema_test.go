package hash

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"

	"github.com/fairlead/fairlead/internal/crds"
)

// defaulters fill in the defaults of each version of the API, as the API server does with what it reads.
func defaulters(t testing.TB) map[string]func(spec map[string]any) {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	fill := map[string]func(map[string]any){}
	for _, crd := range all {
		if crd.Name != "materializes.materialize.cloud" {
			continue
		}
		for _, version := range crd.Spec.Versions {
			var props apiextensions.JSONSchemaProps
			err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := schema.NewStructural(&props)
			if err != nil {
				t.Fatal(err)
			}
			of := whole.Properties["spec"]
			fill[version.Name] = func(spec map[string]any) {
				defaulting.PruneNonNullableNullsWithoutDefaults(spec, &of)
				defaulting.Default(spec, &of)
			}
		}
	}
	return fill
}

// TestSchemaDefaultsRollNothing holds for whatever defaults the schema has: which of two versions an object was stored in
// decides whether it has them.
func TestSchemaDefaultsRollNothing(t *testing.T) {
	specs := map[string]string{
		"least": least,
		"rich":  rich,
		"variables that refer to something": least + `
environmentdExtraEnv:
- {name: A, valueFrom: {secretKeyRef: {key: k}}}
- {name: B, valueFrom: {configMapKeyRef: {key: k}}}
- {name: C, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}
`,
	}
	fillers := defaulters(t)
	if len(fillers) != 2 {
		t.Fatalf("%d versions of the API", len(fillers))
	}
	for version, fill := range fillers {
		for name, spec := range specs {
			bare := parse(t, spec)
			filled := jsonOf(t, spec)
			before := len(filled)
			fill(filled)
			if name == "least" && len(filled) == before {
				t.Errorf("%s has no defaults", version)
			}
			if hashOf(t, bare) != hashOf(t, typed(t, filled)) {
				t.Errorf("%s: the defaults of %s change the hash of\n%s\nto that of\n%s", name, version, canonical(bare), canonical(typed(t, filled)))
			}
		}
	}
}
