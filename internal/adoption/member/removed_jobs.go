package member

import (
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job")

// removedJob is a Job as it was last, and when it was removed.
type removedJob struct {
	job *unstructured.Unstructured
	at  time.Time
}

// rememberFor is how long a removed Job is remembered: its Work is reconciled soon after it was removed.
const rememberFor = time.Hour

// recordRemoval remembers a Job that was removed. One whose last state was missed, because the watch was interrupted, is none.
func (m *Client) recordRemoval(object any) {
	job, ok := object.(*unstructured.Unstructured)
	if !ok || job.GroupVersionKind() != jobKind {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(m.removed, func(_ client.ObjectKey, r removedJob) bool { return now.Sub(r.at) > rememberFor })
	if m.removed == nil {
		m.removed = map[client.ObjectKey]removedJob{}
	}
	m.removed[client.ObjectKeyFromObject(job)] = removedJob{job, now}
}

// RemovedJob is the Job of that name as it was when it was removed, nil if that was not seen.
func (m *Client) RemovedJob(like *unstructured.Unstructured) *unstructured.Unstructured {
	if like.GroupVersionKind() != jobKind {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removed[client.ObjectKeyFromObject(like)].job
}

// forgetRemoval forgets the Job that was removed before this one was created.
func (m *Client) forgetRemoval(live *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(live)
	// The live one may have been removed since it was read.
	if before, found := m.removed[key]; found && before.job.GetUID() != live.GetUID() {
		delete(m.removed, key)
	}
}

func newJob() *unstructured.Unstructured {
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(jobKind)
	return job
}

// keepJobStatus drops all of a Job but its status, and the metadata that identify it.
func keepJobStatus(object any) (any, error) {
	job, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	kept := newJob()
	kept.SetNamespace(job.GetNamespace())
	kept.SetName(job.GetName())
	kept.SetUID(job.GetUID())
	kept.SetResourceVersion(job.GetResourceVersion())
	kept.SetLabels(job.GetLabels())
	if status, found := job.Object["status"]; found {
		kept.Object["status"] = status
	}
	return kept, nil
}
