package work

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
)

// finishedStatus is the status of a Job or Pod that has finished and does not run again for the same manifest; nil for any other
// object. It is what the Work remembers of the object once that is removed.
func finishedStatus(work *workv1alpha1.Work, object Object) *workv1alpha1.ManifestStatus {
	s := statusOf(work, object.Ordinal)
	if s.WrittenManifest == "" || manifest.Digest(manifest.ForMember(object.Manifest).Object) != s.WrittenManifest {
		return nil
	}
	switch object.Manifest.GroupVersionKind().GroupKind().String() {
	case "Job.batch":
		return finishedJob(s, object)
	case "Pod":
		// A Pod that is being deleted is stopped, and then looks as if it had finished: only what was recorded before counts.
		if s.Status != nil && isFinishedPod(object.Manifest, s.Status.Raw) {
			return s
		}
	}
	return nil
}

func finishedJob(recorded *workv1alpha1.ManifestStatus, object Object) *workv1alpha1.ManifestStatus {
	if recorded.Status != nil && isFinishedJob(recorded.Status.Raw) {
		return recorded
	}
	last := object.Live
	if last == nil {
		last = object.Removed
	}
	s := recorded.DeepCopy()
	switch {
	case last != nil:
		if s.Status = rawStatus(last); s.Status != nil && isFinishedJob(s.Status.Raw) {
			return s
		}
	case removesItself(object.Manifest):
		// Nobody saw how the Job ended. The TTL controller removes finished Jobs only, and to run one twice may do harm.
		s.Status = nil
		return s
	}
	return nil
}

// removesItself holds for a Job that its cluster removes when it has finished, unless it cannot run at all.
func removesItself(job *unstructured.Unstructured) bool {
	_, limited, _ := unstructured.NestedInt64(job.Object, "spec", "ttlSecondsAfterFinished")
	suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	return limited && !suspended
}

func isFinishedJob(status []byte) bool {
	var job batchv1.JobStatus
	if json.Unmarshal(status, &job) != nil {
		return false
	}
	for _, c := range job.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// isFinishedPod holds for a Pod whose containers have ended and are not restarted. One that its cluster evicted has not finished.
func isFinishedPod(pod *unstructured.Unstructured, status []byte) bool {
	policy, _, _ := unstructured.NestedString(pod.Object, "spec", "restartPolicy")
	var s corev1.PodStatus
	if policy == "" || policy == string(corev1.RestartPolicyAlways) || json.Unmarshal(status, &s) != nil {
		return false
	}
	for _, c := range s.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return false
		}
	}
	return s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed
}

// rawStatus is the status of an object, nil if it has none.
func rawStatus(object *unstructured.Unstructured) *runtime.RawExtension {
	said, found := object.Object["status"]
	if !found {
		return nil
	}
	text, err := json.Marshal(said)
	if err != nil {
		return nil
	}
	return &runtime.RawExtension{Raw: text}
}
