package work

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// finishedStatus is the status of a Job or Pod that has finished and does not run again for the same manifest; nil for any other
// object. It is what the Work remembers of the object once that is removed.
func finishedStatus(work *workv1alpha1.Work, object Object) *workv1alpha1.ManifestStatus {
	s, version := statusOf(work, object.Ordinal), manifest.Digest(manifest.ForMember(object.Manifest).Object)
	if s.WrittenObject == "" {
		// The object was written for an earlier Work, if it was written at all.
		if before := model.FinishedBefore(work); before != nil && before.WrittenManifest == version && before.Identifier.Ordinal == object.Ordinal {
			return before
		}
	}
	if s.WrittenManifest == "" || version != s.WrittenManifest {
		return nil
	}
	switch object.Manifest.GroupVersionKind().GroupKind().String() {
	case "Job.batch":
		return finishedJob(s, object)
	case "Pod":
		// A Pod that is being deleted is stopped, and then looks as if it had finished: only what was recorded before counts.
		if s.Status != nil && manifest.HasFinished(object.Manifest, s.Status.Raw) {
			return s
		}
	}
	return nil
}

func finishedJob(recorded *workv1alpha1.ManifestStatus, object Object) *workv1alpha1.ManifestStatus {
	if recorded.Status != nil && manifest.HasFinished(object.Manifest, recorded.Status.Raw) {
		return recorded
	}
	last := object.Live
	if last == nil {
		last = object.Removed
	}
	s := recorded.DeepCopy()
	switch {
	case last != nil:
		if s.Status = rawStatus(last); s.Status != nil && manifest.HasFinished(object.Manifest, s.Status.Raw) {
			return s
		}
	case manifest.RemovesItself(object.Manifest):
		// Nobody saw how the Job ended. The TTL controller removes finished Jobs only, and to run one twice may do harm.
		s.Status = nil
		return s
	}
	return nil
}

// maxRawStatus bounds the status of an object in its Work, which quotes the manifest too, and has to fit into the store of the hub.
const maxRawStatus = 64 << 10

// rawStatus is the status of an object, nil if it has none. Of one that is too large it has what tells how the object is.
func rawStatus(object *unstructured.Unstructured) *runtime.RawExtension {
	said, found := object.Object["status"]
	if !found {
		return nil
	}
	text, err := json.Marshal(said)
	if all, is := said.(map[string]any); err == nil && is && len(text) > maxRawStatus {
		essential := map[string]any{}
		for _, field := range []string{"conditions", "phase", "observedGeneration"} {
			if value, found := all[field]; found {
				essential[field] = value
			}
		}
		text, err = json.Marshal(essential)
	}
	if err != nil || len(text) > maxRawStatus {
		return nil
	}
	return &runtime.RawExtension{Raw: text}
}
