package foreign

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
