package foreign

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// TestGenerated: what a control plane of Kuma has generated, and no more, is taken over with its passage.
func TestGenerated(t *testing.T) {
	system := Of("meshservice")
	for name, tc := range map[string]struct {
		kind, owner, by, manager string
		want                     bool
	}{
		"the Dataplane of a pod":                 {"Dataplane", "Pod", "", "kuma-cp", true},
		"the MeshService of a Service":           {"MeshService", "Service", "k8s-controller", "kuma-cp", true},
		"Fairlead's own":                         {"MeshService", "Service", "fairlead", "kuma-cp", false},
		"of a third controller":                  {"MeshService", "Service", "example.com", "kuma-cp", false},
		"one that a user has written":            {"MeshService", "Service", "", "kubectl", false},
		"one without an owner":                   {"MeshService", "", "", "kuma-cp", false},
		"one of something else":                  {"MeshService", "Deployment", "", "kuma-cp", false},
		"a MeshService that a pod owns":          {"MeshService", "Pod", "", "kuma-cp", false},
		"one in which kuma-cp has only a status": {"Dataplane", "Pod", "", "", false},
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
			if got := system.Generated.isGenerated(object, kindOf(system, tc.kind), system.Managers); got != tc.want {
				t.Errorf("taken over: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestClaimOwner: an object that its owner does not control is taken over as one that it does, since Fairlead goes by that.
func TestClaimOwner(t *testing.T) {
	owner := func(kind, name string, controls *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(name), Controller: controls}
	}
	service, pod := owner("Service", "redis", nil), owner("Pod", "redis-0", nil)
	controls := owner("Service", "redis", ptr.To(true))
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		// want is nil if nothing is taken over, and empty if the references stay.
		want []metav1.OwnerReference
	}{
		"that controls it":                  {[]metav1.OwnerReference{controls}, []metav1.OwnerReference{}},
		"that does not":                     {[]metav1.OwnerReference{service}, []metav1.OwnerReference{controls}},
		"beside one of another kind":        {[]metav1.OwnerReference{pod, service}, []metav1.OwnerReference{pod, controls}},
		"while one of another kind does":    {[]metav1.OwnerReference{owner("Deployment", "x", ptr.To(true)), service}, nil},
		"of another kind alone":             {[]metav1.OwnerReference{pod}, nil},
		"of the kind, and of another group": {[]metav1.OwnerReference{{APIVersion: "serving.knative.dev/v1", Kind: "Service", Name: "redis", UID: "1"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			object := generated("redis-0")
			object.OwnerReferences = tc.owners
			patched := claimAll(t, nil, object)
			if (patched["shop/redis-0"] != nil) != (tc.want != nil) {
				t.Fatalf("taken over by %v", patched)
			}
			var body struct{ Metadata metav1.ObjectMeta }
			if err := json.Unmarshal(patched["shop/redis-0"], &body); tc.want != nil && err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, body.Metadata.OwnerReferences, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func kindOf(system System, name string) Kind {
	return system.Kinds[slices.IndexFunc(system.Kinds, func(k Kind) bool { return k.Kind == name })]
}

// generated is a MeshService of a Kuma control plane.
func generated(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "kuma.io/v1alpha1", Kind: "MeshService"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, ResourceVersion: "7", Labels: map[string]string{"app": name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: name, UID: "1", Controller: ptr.To(true)}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kuma-cp", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}},
		},
	}
}

// claimAll has the patches of objects. All but the refused ones succeed, and otherwise an error is expected.
func claimAll(t *testing.T, refused []string, objects ...runtime.Object) map[string]json.RawMessage {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleMetadataClient(scheme, objects...)
	patches := map[string]json.RawMessage{}
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if slices.Contains(refused, patch.GetName()) {
			return true, nil, errors.New("refused")
		}
		patches[patch.GetNamespace()+"/"+patch.GetName()] = patch.GetPatch()
		return true, &metav1.PartialObjectMetadata{}, nil
	})
	r := &Reporter{log: logr.Discard(), metadata: client}
	if err := r.ClaimGenerated(t.Context(), Of("meshservice")); (err != nil) != (len(refused) > 0) {
		t.Errorf("taken over but for %v: %v", refused, err)
	}
	return patches
}

// TestClaimGenerated: an object that cannot be taken over keeps no other from it, and nothing but what tells who generates it is
// written, to the version that was seen.
func TestClaimGenerated(t *testing.T) {
	patches := claimAll(t, []string{"cart"}, generated("cart"), generated("stock"))
	want := map[string]json.RawMessage{"shop/stock": json.RawMessage(`{"metadata":{"labels":{"kuma.io/managed-by":"fairlead"},"resourceVersion":"7"}}`)}
	if diff := cmp.Diff(want, patches); diff != "" {
		t.Error(diff)
	}
}
