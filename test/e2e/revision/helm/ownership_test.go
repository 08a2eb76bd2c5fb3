package helm_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

func TestObjectsOfOthers(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	tests := map[string]struct {
		// there makes the ConfigMap that the release wants to have, and returns its holder.
		there func(h *hub, spec release.Spec) string
	}{
		"nobody's": {func(h *hub, spec release.Spec) string {
			h.boat(spec.Namespace, "pequod", nil, nil)
			return "no release"
		}},
		"another release's": {func(h *hub, spec release.Spec) string {
			other := and(spec, "peleg", "pequod")
			other.Name = "other"
			h.install(other)
			return "Helm release " + spec.Namespace + "/other"
		}},
		"another controller's": {func(h *hub, spec release.Spec) string {
			owner := h.owner()
			h.boat(spec.Namespace, "pequod", nil, owner)
			return "ClusterRole " + owner.Name
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := h.in(t)
			spec := h.harbour("ahab", "pequod")
			spec.Chart = boatsOnly
			holder := tc.there(h, spec)
			err := h.Install(t.Context(), spec)
			var taken *release.OwnedByOthersError
			if !errors.As(err, &taken) {
				t.Fatalf("error %v, want an OwnedByOthersError", err)
			}
			want := []release.Conflict{{Object: "ConfigMap " + spec.Namespace + "/pequod", Holder: holder}}
			if diff := cmp.Diff(want, taken.Conflicts); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
			if records := h.records(spec); len(records) > 0 {
				t.Errorf("this was recorded all the same: %v", recordNames(records))
			}
			if name == "another controller's" {
				return // an object can have one only
			}

			spec.TakeOwnership = true
			h.install(spec)
			h.is("after it was taken over", spec)
			if name == "another release's" {
				pequod := h.render(spec)[0]
				other := spec
				other.Name = "other"
				h.uninstall(other)
				if h.live(pequod) == nil {
					t.Error("the release that had it before has taken it along")
				}
			}
		})
	}
}

// boatsOnly is the harbour without the parts that are named after the release.
var boatsOnly = makeChart("boats", map[string]string{"boats.yaml": boats})

func (h *hub) boat(namespace, name string, annotations map[string]string, owner *metav1.OwnerReference) {
	h.t.Helper()
	boat := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}}
	if owner != nil {
		boat.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if err := h.Create(h.t.Context(), boat); err != nil {
		h.t.Fatal(err)
	}
}

func TestLostOwnershipIsNoConflict(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab", "pequod")
	h.install(spec)
	h.patch(find(t, h.render(spec), "ConfigMap"), func(object map[string]any) {
		unstructured.RemoveNestedField(object, "metadata", "annotations")
		unstructured.RemoveNestedField(object, "metadata", "ownerReferences")
	})
	next := and(spec, "bildad", "pequod")
	h.install(next)
	h.is("after the upgrade", next)
}

// Two leaders that hand a shared release over to each other may each stamp its objects last.
func TestRestoreTakesOverObjectsOfTheSameRelease(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab", "pequod")
	spec.Chart, spec.TakeOwnership = boatsOnly, true
	h.install(spec)
	pequod := h.render(spec)[0]
	stamped := func(annotation, value string) {
		h.patch(pequod, func(object map[string]any) {
			_ = unstructured.SetNestedField(object, value, "metadata", "annotations", annotation)
		})
	}
	stamped("meta.helm.sh/release-namespace", "elsewhere")
	if changed, err := h.Restore(t.Context(), spec, pequod); err != nil || !changed {
		t.Errorf("changed %t, error %v", changed, err)
	}
	h.is("after the restore", spec)
	stamped("meta.helm.sh/release-name", "other")
	if _, err := h.Restore(t.Context(), spec, pequod); !errors.As(err, new(*release.OwnedByOthersError)) {
		t.Errorf("what another release has: error %v", err)
	}
}

func TestObjectsTakenByOthersAreKept(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab", "pequod", "rachel")
	h.install(spec)
	pequod := find(t, h.render(spec), "ConfigMap")
	h.patch(pequod, func(object map[string]any) {
		_ = unstructured.SetNestedField(object, "other", "metadata", "annotations", "meta.helm.sh/release-name")
		unstructured.RemoveNestedField(object, "metadata", "ownerReferences")
	})
	if _, err := h.Restore(t.Context(), spec, pequod); !errors.As(err, new(*release.OwnedByOthersError)) {
		t.Errorf("error of the restore: %v", err)
	}
	h.install(and(spec, "bildad", "rachel"))
	h.uninstall(spec)
	if h.live(pequod) == nil {
		t.Error("it was deleted")
	}
}
