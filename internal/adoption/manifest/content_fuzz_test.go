package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// FuzzContent: a Work has no values of a Secret, the values that belong to it make it whole again, and no others do.
func FuzzContent(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"k":"dg=="},"type":"Opaque"}`), []byte(`{"data":{"k":"dw=="}}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Secret","stringData":{"k":"v"},"data":null}`), []byte(`{"stringData":{"k":"v"},"data":null}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Secret","data":7,"metadata":{"annotations":{"fairlead.dev/content":"x"}}}`), []byte(`{}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"v"}}`), []byte(`{"data":{"k":"v"}}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Secret"}`), []byte(`{"data":{}}`))
	f.Fuzz(func(t *testing.T, text, otherText []byte) {
		m := &unstructured.Unstructured{}
		if m.UnmarshalJSON(text) != nil || len(m.GetAnnotations()[AnnotationContent]) > 0 {
			t.Skip("no object, or one of a Work")
		}
		m.SetName("it")
		if len(m.GetAnnotations()) == 0 {
			m.SetAnnotations(nil) // an empty map is not kept
		}
		before, content := m.DeepCopy(), ContentOf(m)
		rest := WithoutContent(m)
		if diff := cmp.Diff(before.Object, m.Object); diff != "" {
			t.Errorf("the manifest has changed:\n%s", diff)
		}
		if m.GetKind() == "Secret" && m.GetAPIVersion() == "v1" {
			for _, field := range []string{"data", "stringData"} {
				if _, found := rest.Object[field]; found {
					t.Errorf("%s is left in %v", field, rest.Object)
				}
			}
		}
		if diff := cmp.Diff(rest.Object, WithoutContent(rest).Object); diff != "" {
			t.Errorf("without its values, twice:\n%s", diff)
		}
		whole := WithContent(rest, content)
		if whole == nil {
			t.Fatal("its own values are not accepted")
		}
		if len(content) > 0 {
			if diff := cmp.Diff(m.Object, whole.Object); diff != "" {
				t.Errorf("with its values again (-want +got):\n%s", diff)
			}
		}
		var theirs map[string]any
		if json.Unmarshal(otherText, &theirs) == nil && len(content) > 0 && !cmp.Equal(theirs, content, cmpopts.EquateEmpty()) && WithContent(rest, theirs) != nil {
			t.Errorf("%v is accepted for %v", theirs, content)
		}
	})
}
