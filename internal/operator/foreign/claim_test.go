package foreign

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// TestGenerated: what a control plane of Kuma has generated, and no more, is taken over with its passage.
func TestGenerated(t *testing.T) {
	system := Of("meshservice")
	for name, tc := range map[string]struct {
		owner, by, manager string
		want               bool
	}{
		"the Dataplane of a pod":                 {"Pod", "", "kuma-cp", true},
		"the MeshService of a Service":           {"Service", "k8s-controller", "kuma-cp", true},
		"Fairlead's own":                         {"Service", "fairlead", "kuma-cp", false},
		"somebody else's":                        {"Service", "example.com", "kuma-cp", false},
		"one that a user has written":            {"Service", "", "kubectl", false},
		"one without an owner":                   {"", "", "kuma-cp", false},
		"one of something else":                  {"Deployment", "", "kuma-cp", false},
		"one in which kuma-cp has only a status": {"Pod", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			if tc.owner != "" {
				object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: tc.owner, Name: "cart", UID: "1", Controller: ptr.To(true)}})
			}
			if tc.by != "" {
				object.SetLabels(map[string]string{system.Generated.Label: tc.by})
			}
			entries := []metav1.ManagedFieldsEntry{{Manager: "kuma-cp", Operation: "Update", Subresource: "status", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}
			if tc.manager != "" {
				entries = append(entries, metav1.ManagedFieldsEntry{Manager: tc.manager, Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")})
			}
			object.SetManagedFields(entries)
			if got := system.Generated.isTheirs(object, system.Managers); got != tc.want {
				t.Errorf("taken over: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestClaimGenerated: an object that cannot be taken over keeps no other from it, and nothing but what tells who generates it is
// written, to the version that was seen.
func TestClaimGenerated(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	generated := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "kuma.io/v1alpha1", Kind: "MeshService"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name, ResourceVersion: "7", Labels: map[string]string{"app": name},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: name, UID: "1", Controller: ptr.To(true)}},
				ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kuma-cp", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}},
			},
		}
	}
	client := fake.NewSimpleMetadataClient(scheme, generated("cart"), generated("stock"))
	written := map[string]map[string]any{}
	client.PrependReactor("patch", "meshservices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if patch.GetName() == "cart" {
			return true, nil, errors.New("refused")
		}
		var body map[string]any
		if err := json.Unmarshal(patch.GetPatch(), &body); err != nil {
			return true, nil, err
		}
		written[patch.GetNamespace()+"/"+patch.GetName()] = body
		return true, generated(patch.GetName()), nil
	})
	r := &Reporter{log: logr.Discard(), metadata: client}
	if err := r.ClaimGenerated(t.Context(), Of("meshservice")); err == nil {
		t.Error("that an object was not taken over is no error, and would not be tried again")
	}
	want := map[string]map[string]any{"shop/stock": {"metadata": map[string]any{
		"resourceVersion": "7", "labels": map[string]any{"kuma.io/managed-by": "fairlead"},
	}}}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Error(diff)
	}
}
