package work

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
)

// finishedJob is the last status of a Job that has finished and was cleaned up since, which is not created again; nil for any
// other object.
func finishedJob(work *workv1alpha1.Work, object Object) *workv1alpha1.ManifestStatus {
	s := statusOf(work, object.Ordinal)
	if object.Manifest.GroupVersionKind().GroupKind().String() != "Job.batch" || s.Status == nil ||
		digestOf(manifest.ForMember(object.Manifest).Object) != s.WrittenManifest {
		return nil
	}
	var job batchv1.JobStatus
	if json.Unmarshal(s.Status.Raw, &job) != nil {
		return nil
	}
	for _, c := range job.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return s
		}
	}
	return nil
}
