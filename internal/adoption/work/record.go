package work

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
)

// Record has the digests of the last write to a cluster, by which changes of the template and drift are detected.
type Record struct {
	// Manifest is the digest of the manifest that was written, and Object that of the object that the API server returned.
	Manifest, Object string
}

// statusOf is the status of a manifest, empty if there is none.
func statusOf(work *workv1alpha1.Work, ordinal int) *workv1alpha1.ManifestStatus {
	for i := range work.Status.ManifestStatuses {
		if s := &work.Status.ManifestStatuses[i]; s.Identifier.Ordinal == ordinal {
			return s
		}
	}
	return &workv1alpha1.ManifestStatus{}
}

// recordOf is the record of the last write of a manifest, empty if there was none.
func recordOf(work *workv1alpha1.Work, ordinal int) Record {
	s := statusOf(work, ordinal)
	return Record{s.WrittenManifest, s.WrittenObject}
}

// newRecord is the record of a write: of its manifest, and of the live object after it.
func newRecord(desired, live *unstructured.Unstructured) Record {
	written := manifest.ForMember(desired)
	return Record{Manifest: manifest.Digest(written.Object), Object: manifest.Digest(contentOf(live, written))}
}

// contentOf is the part of a live object that a manifest determines: not the status, the metadata of other clients, and the
// fields that the cluster assigns. Replicas are compared apart, because an autoscaler may change them.
func contentOf(live, said *unstructured.Unstructured) map[string]any {
	rest := &unstructured.Unstructured{Object: make(map[string]any, len(live.Object))}
	for field, value := range live.Object {
		if field != "metadata" && field != "status" {
			rest.Object[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	for _, path := range manifest.AssignedPaths[live.GroupVersionKind().GroupKind().String()] {
		if _, found, err := unstructured.NestedFieldNoCopy(said.Object, path...); err == nil && !found {
			unstructured.RemoveNestedField(rest.Object, path...)
		}
	}
	manifest.RemoveInjected(rest, said)
	if _, found, err := unstructured.NestedInt64(said.Object, "spec", "replicas"); err == nil && found {
		unstructured.RemoveNestedField(rest.Object, "spec", "replicas")
	}
	content := map[string]any{
		"labels": selectKeys(live.GetLabels(), said.GetLabels()), "annotations": selectKeys(live.GetAnnotations(), said.GetAnnotations()),
	}
	maps.Copy(content, rest.Object)
	return content
}

// EqualForUsers tells whether two objects have the same content, but for the ownership labels and the fields that no user sets.
func EqualForUsers(a, b *unstructured.Unstructured) bool {
	of, with := manifest.UserContent(a), manifest.UserContent(b)
	// Equal digests take longer to find, and are also those of numbers of two types.
	return reflect.DeepEqual(of, with) || manifest.Digest(of) == manifest.Digest(with)
}

func selectKeys(live, want map[string]string) map[string]string {
	all := map[string]string{}
	for key := range want {
		if value, found := live[key]; found {
			all[key] = value
		}
	}
	return all
}
