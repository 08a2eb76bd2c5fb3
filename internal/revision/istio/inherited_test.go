package istio

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// TestInheritedFields: what the Istio asks for is Fairlead's, and what a Sail Operator has added stays until the version changes.
func TestInheritedFields(t *testing.T) {
	const spec = `"f:spec":{"f:namespace":{},"f:version":{},"f:values":{"f:meshConfig":{"f:accessLogFile":{}},"f:pilot":{"f:image":{}}}}`
	made := func(managers ...string) *v1.IstioRevision {
		r := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "default", ResourceVersion: "7"}, Spec: v1.IstioRevisionSpec{Version: "v1.24.0", Namespace: "istio-system"}}
		for _, manager := range managers {
			r.ManagedFields = append(r.ManagedFields, metav1.ManagedFieldsEntry{
				Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "sailoperator.io/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{" + spec + "}"),
			})
		}
		return r
	}
	want := v1.IstioRevisionSpec{Version: "v1.24.0", Namespace: "istio-system", Values: v1.Values{"meshConfig": map[string]any{"accessLogFile": "/dev/stdout"}}}
	next := want
	next.Version = "v1.26.0"
	for name, tc := range map[string]struct {
		have *v1.IstioRevision
		want v1.IstioRevisionSpec
		// left are the fields of each manager after the patch, none without a patch.
		left map[string]string
	}{
		"the same version":          {made("sail-operator"), want, map[string]string{"sail-operator": `{"f:spec":{"f:values":{"f:pilot":{"f:image":{}}}}}`}},
		"another version":           {made("sail-operator"), next, map[string]string{v1.FieldOwner: "{" + spec + "}"}},
		"of another client":         {made("kubectl-edit"), want, nil},
		"of another client, and on": {made("kubectl-edit"), next, nil},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := inheritedFields(tc.have, tc.want)
			if err != nil || (patch == nil) != (tc.left == nil) {
				t.Fatalf("the patch is %s, %v", patch, err)
			}
			if patch == nil {
				return
			}
			var operations []struct {
				Path  string
				Value json.RawMessage
			}
			if err := json.Unmarshal(patch, &operations); err != nil {
				t.Fatal(err)
			}
			if string(operations[1].Value) != `"7"` {
				t.Errorf("the patch is for version %s", operations[1].Value)
			}
			var entries []metav1.ManagedFieldsEntry
			if err := json.Unmarshal(operations[0].Value, &entries); err != nil {
				t.Fatal(err)
			}
			if len(entries) != len(tc.left) {
				t.Errorf("managers: %+v", entries)
			}
			for _, entry := range entries {
				if got, want := sorted(t, entry.FieldsV1.GetRawString()), sorted(t, tc.left[entry.Manager]); got != want {
					t.Errorf("%s has %s, want %s", entry.Manager, got, want)
				}
			}
		})
	}
}

func sorted(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(strings.TrimSpace(text)), &value); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
