package istio

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// What was written to revisions of others is not looked for: with many of them, that would take long.
func TestRevisionFor(t *testing.T) {
	istio := makeIstio("default").Istio
	for owner, want := range map[string]string{"default": "v1.24.0", "other": ""} {
		revision := makeRevision("default-v1-24-0", "v1.24.0").of(owner).IstioRevision
		revision.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: v1.FieldOwner, Operation: metav1.ManagedFieldsOperationApply, APIVersion: v1.GroupVersion.String(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:version":{}}}`),
		}}
		got, err := revisionFor(istio, revision)
		if err != nil || got.IstioRevision != revision || got.Written.Version != want {
			t.Errorf("of %s: %+v, %v", owner, got.Written, err)
		}
	}
}

func TestWrittenBy(t *testing.T) {
	fields := func(owner, json string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: owner, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "sailoperator.io/v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(json),
		}
	}
	revision := &v1.IstioRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "default", ManagedFields: []metav1.ManagedFieldsEntry{
			fields("somebody", `{"f:spec":{"f:values":{"f:pilot":{"f:image":{}}}}}`),
			fields(v1.FieldOwner, `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}},"f:spec":{"f:namespace":{},`+
				`"f:values":{"f:pilot":{"f:replicaCount":{},"f:tolerations":{}},"f:dropped":{}},"f:version":{}}}`),
		}},
		Spec: v1.IstioRevisionSpec{
			Version:   "v1.24.0",
			Namespace: "istio-system",
			Values: v1.Values{
				"dropped": nil,
				"pilot": map[string]any{
					"replicaCount": int64(2),
					"tolerations":  []any{map[string]any{"key": "a"}},
					"image":        "theirs",
				},
			},
		},
	}
	got, err := writtenBy(v1.FieldOwner, revision)
	if err != nil {
		t.Fatal(err)
	}
	want := revision.Spec.DeepCopy()
	delete(want.Values["pilot"].(map[string]any), "image")
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Error(diff)
	}

	revision.ManagedFields = nil
	got, err = writtenBy(v1.FieldOwner, revision)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v1.IstioRevisionSpec{}, got); diff != "" {
		t.Errorf("of a revision made by others nothing is ours: %s", diff)
	}
}
