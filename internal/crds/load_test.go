package crds

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestAll(t *testing.T) {
	crds, err := All()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, crd := range crds {
		names = append(names, crd.Name)
		if _, marked := schemaVersion(crd); !marked {
			t.Errorf("%s carries no schema version", crd.Name)
		}
		if crd.Annotations[generatorAnnotation] != "" {
			t.Errorf("%s still names its generator", crd.Name)
		}
	}
	want := []string{"istiorevisions.sailoperator.io", "istiorevisiontags.sailoperator.io", "istios.sailoperator.io"}
	for _, name := range want {
		if !strings.Contains(strings.Join(names, " "), name) {
			t.Errorf("%s is missing in %v", name, names)
		}
	}
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	if err := Print(&out, nil); err != nil {
		t.Fatal(err)
	}
	want, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for i, crd := range want {
		want[i], _ = desiredCRD(nil, crd, nil)
	}
	var got []*apiextensionsv1.CustomResourceDefinition
	for document := range strings.SplitSeq(strings.TrimPrefix(out.String(), "---\n"), "\n---\n") {
		if strings.Contains(document, "\nstatus:") || strings.Contains(document, "creationTimestamp: null") {
			t.Errorf("printed what belongs to the server:\n%.200s", document)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict([]byte(document), crd); err != nil {
			t.Fatal(err)
		}
		got = append(got, crd)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was printed is not what is installed:\n%s", diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"not YAML":         {"kind: [", "read CRD manifest manifests/boats.yaml"},
		"an unknown field": {"kind: CustomResourceDefinition\nspec: {sails: 3}\n", `unknown field "sails"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load(fstest.MapFS{"manifests/boats.yaml": {Data: []byte(tc.text)}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestDeprecatedVersion: who uses v1alpha1 of Materialize is told what to use, field by field.
func TestDeprecatedVersion(t *testing.T) {
	found, err := Named("materializes.materialize.cloud")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range found[0].Spec.Versions {
		if old := version.Name == "v1alpha1"; version.Deprecated != old || (version.DeprecationWarning != nil) != old {
			t.Errorf("%s is deprecated: %t, with %v", version.Name, version.Deprecated, version.DeprecationWarning)
		} else if !old {
			continue
		}
		for _, word := range []string{"materialize.cloud/v1alpha2", "requestRollout", "inPlaceRollout", "rolloutStrategy", "environmentdIamRoleArn", "serviceAccountAnnotations"} {
			if !strings.Contains(*version.DeprecationWarning, word) {
				t.Errorf("the warning does not name %s: %s", word, *version.DeprecationWarning)
			}
		}
	}
}
