package work

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/adoption/manifest"
)

// Record is what was last written to a cluster, and what became of it there.
type Record struct {
	// Manifest is the digest of what was written, and Object that of what the cluster made of it.
	Manifest, Object string
}

// newRecord is that of a manifest that was written, and of the object that the cluster made of it.
func newRecord(desired, live *unstructured.Unstructured) Record {
	written := manifest.ForMember(desired)
	return Record{Manifest: digestOf(written.Object), Object: digestOf(contentOf(live, written))}
}

// contentOf is all that a manifest could have a say in: everything but the status, the metadata of others, and what the
// cluster assigns. Replicas that the manifest says are looked at apart, for others may be entitled to change them.
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
	content := map[string]any{
		"labels": selectKeys(live.GetLabels(), said.GetLabels()), "annotations": selectKeys(live.GetAnnotations(), said.GetAnnotations()),
	}
	for field, value := range rest.Object {
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
		// What was read from JSON can be written as JSON; anything else is still told apart.
		text = fmt.Append(nil, content)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}
