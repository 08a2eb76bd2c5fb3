package work

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
)

// finishedJob is the last status of a Job that has finished and was cleaned up since, which is not created again; nil for any
// other object.
func finishedJob(work *workv1alpha1.Work, i int, desired *unstructured.Unstructured, before Record) *workv1alpha1.ManifestStatus {
	if desired.GroupVersionKind().GroupKind().String() != "Job.batch" || before.Manifest == "" {
		return nil
	}
	if digestOf(manifest.ForMember(desired).Object) != before.Manifest {
		return nil
	}
	for n := range work.Status.ManifestStatuses {
		s := &work.Status.ManifestStatuses[n]
		if s.Identifier.Ordinal != i || s.Status == nil {
			continue
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
	}
	return nil
}
