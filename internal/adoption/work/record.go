package work

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Record has the digests of the last write to a cluster, by which changes of the template and drift are detected.
type Record struct {
	// Manifest is the digest of the manifest that was written, and Object that of the object that the API server returned.
	Manifest, Object string
}

// recordOf is the record of the last write of a manifest, empty if there was none.
func recordOf(work *workv1alpha1.Work, ordinal int) Record {
	for _, s := range work.Status.ManifestStatuses {
		if s.Identifier.Ordinal == ordinal {
			return Record{s.WrittenManifest, s.WrittenObject}
		}
	}
	return Record{}
}

// newRecord is the record of a write: of its manifest, and of the live object after it.
func newRecord(desired, live *unstructured.Unstructured) Record {
	written := manifest.ForMember(desired)
	return Record{Manifest: digestOf(written.Object), Object: digestOf(contentOf(live, written))}
}

// contentOf is the part of a live object that a manifest determines: not the status, the metadata of other clients, and the
// fields that the cluster assigns. Replicas are compared apart, because an autoscaler may change them.
func contentOf(live, said *unstructured.Unstructured) map[string]any {
	rest := live.DeepCopy()
	for _, path := range manifest.AssignedPaths[live.GroupVersionKind().GroupKind().String()] {
		if _, found, err := unstructured.NestedFieldNoCopy(said.Object, path...); err == nil && !found {
			unstructured.RemoveNestedField(rest.Object, path...)
		}
	}
	if _, found, err := unstructured.NestedInt64(said.Object, "spec", "replicas"); err == nil && found {
		unstructured.RemoveNestedField(rest.Object, "spec", "replicas")
	}
	return withMetadata(rest, selectKeys(live.GetLabels(), said.GetLabels()), selectKeys(live.GetAnnotations(), said.GetAnnotations()))
}

// EqualForUsers tells whether two objects have the same content, but for the ownership labels and the fields that no user sets.
func EqualForUsers(a, b *unstructured.Unstructured) bool {
	return digestOf(userContent(a)) == digestOf(userContent(b))
}

func userContent(object *unstructured.Unstructured) map[string]any {
	return withMetadata(object, model.MergeKeys(object.GetLabels(), model.OwnershipLabels), object.GetAnnotations())
}

// withMetadata is the content of an object without its status, and with the given labels and annotations as its only metadata.
func withMetadata(object *unstructured.Unstructured, labels, annotations map[string]string) map[string]any {
	content := map[string]any{"labels": labels, "annotations": annotations}
	for field, value := range object.Object {
		if field != "metadata" && field != "status" {
			content[field] = value
		}
	}
	return content
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

func digestOf(content any) string {
	text, err := json.Marshal(content)
	if err != nil {
		// Content that was read from JSON can be encoded; the text of any other still differs by content.
		text = fmt.Append(nil, content)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}
