package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	production = "apiVersion: materialize.cloud/v1alpha2\nkind: Materialize\nmetadata: {name: production}\nspec: {environmentdImageRef: a}\n"
	staging    = "apiVersion: materialize.cloud/v1alpha1\nkind: Materialize\nmetadata: {name: staging}\nspec: {environmentdImageRef: b}\n"
	secret     = "apiVersion: v1\nkind: Secret\nmetadata: {name: production}\n"
)

var materializeKind = schema.GroupKind{Group: "materialize.cloud", Kind: "Materialize"}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		text string
		want string
	}{
		"alone":         {production, "a"},
		"among others":  {secret + "---\n" + staging + "---\n" + production, "a"},
		"JSON":          {`{"apiVersion":"materialize.cloud/v1alpha1","kind":"Materialize","metadata":{"name":"production"},"spec":{"environmentdImageRef":"c"}}`, "c"},
		"in a list":     {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: materialize.cloud/v1alpha2, kind: Materialize, metadata: {name: production}, spec: {environmentdImageRef: d}}\n", "d"},
		"empty ones":    {"---\n# nothing\n---\n" + production + "---\n", "a"},
		"of other name": {staging, "error: read FILE: there is no Materialize production in it, but staging"},
		"none":          {secret, "error: read FILE: there is no Materialize of materialize.cloud in it"},
		"nothing":       {"", "error: read FILE: there is no Materialize of materialize.cloud in it"},
		"twice":         {production + "---\n" + production, "error: read FILE: there is more than one Materialize production in it; leave one"},
		"not YAML":      {"a: [", "error: read FILE: document 1: yaml: line 1: did not find expected node content"},
		"a key twice":   {"kind: a\nkind: b\n", "error: read FILE: document 1: yaml: unmarshal errors:\n  line 2: key \"kind\" already set in map"},
		"text":          {"hello", "error: read FILE: document 1 is not an object: json: cannot unmarshal string into Go value of type map[string]interface {}"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "new.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for path, stands := range map[string]string{file: file, "-": "standard input"} {
				got := ""
				read, err := Read(strings.NewReader(c.text), path, materializeKind, "production")
				if err != nil {
					got = strings.ReplaceAll("error: "+err.Error(), stands, "FILE")
				} else {
					got, _, _ = unstructured.NestedString(read.Object.Object, "spec", "environmentdImageRef")
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(path, diff)
				}
			}
		})
	}
	t.Run("no such file", func(t *testing.T) {
		if _, err := Read(nil, filepath.Join(t.TempDir(), "absent"), materializeKind, "production"); !os.IsNotExist(err) {
			t.Error(err)
		}
	})
}
