package manifest

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RunsOnce holds for kinds whose objects run to an end, and run again for another manifest.
func RunsOnce(m *unstructured.Unstructured) bool { return isJob(m) || isPod(m) }

// HasFinished tells whether a Job or Pod has run to its end, by its status.
func HasFinished(m *unstructured.Unstructured, status []byte) bool {
	return isJob(m) && isFinishedJob(status) || isPod(m) && isFinishedPod(m, status)
}

func isJob(m *unstructured.Unstructured) bool {
	return m.GroupVersionKind().GroupKind().String() == "Job.batch"
}

func isPod(m *unstructured.Unstructured) bool {
	return m.GroupVersionKind().GroupKind().String() == "Pod"
}

// RemovesItself holds for a Job that its cluster removes when it has finished, unless it cannot run at all.
func RemovesItself(job *unstructured.Unstructured) bool {
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
