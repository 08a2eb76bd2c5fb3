package adoption_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// job has a pod that runs until the test lets it complete.
func job(name string, changes ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{cluster.ReadyAfter: cluster.Held}, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: name, Image: name}}},
	}}}
	for _, change := range changes {
		change(j)
	}
	return j
}

// removedAfter is for a Job that its cluster removes so many seconds after it has finished.
func removedAfter(seconds int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To(seconds) }
}

// completes lets the pods of a Job complete.
func (s *stage) completes(t testing.TB, where *site, name string) {
	t.Helper()
	where.Release(t, s.namespace, cluster.ReadyAfter, map[string]string{"app": name})
}

// active waits until a Job has a pod, and gives its UID.
func (s *stage) active(t testing.TB, where *site, name string) string {
	t.Helper()
	j := job(name)
	s.until(t, where, j, func() error {
		if j.Status.Active != 1 {
			return fmt.Errorf("Job %s has %+v", name, j.Status)
		}
		return nil
	})
	return string(j.UID)
}

// recordedAs waits until the Work of a Job has this in the status of its object.
func (s *stage) recordedAs(t testing.TB, name string, is func(batchv1.JobStatus) bool) {
	t.Helper()
	b := s.says(t, name+"-job", applied)
	wait.Until(t, func(ctx context.Context) error {
		w, err := s.work(ctx, member1, b.Name)
		if err != nil {
			return err
		}
		var status batchv1.JobStatus
		if len(w.Status.ManifestStatuses) == 1 && w.Status.ManifestStatuses[0].Status != nil {
			if err := json.Unmarshal(w.Status.ManifestStatuses[0].Status.Raw, &status); err != nil {
				return err
			}
		}
		if !is(status) {
			return fmt.Errorf("the Work says %+v", status)
		}
		return nil
	})
}

func finished(status batchv1.JobStatus) bool {
	for _, c := range status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// A Job that has finished is not run again when it is removed, by its TTL or by hand, until its template changes. One that is
// removed before it has finished is created again.
func TestFinishedJobIsNotRunAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	west := s.members[member1]
	writes := s.recordWrites(t, west)
	s.create(t, s.hub, policy("batch/v1", "Job"), job("ttl", removedAfter(0)), job("hand"), job("early"), job("early-ttl", removedAfter(0)))
	uids := map[string]string{}
	for _, name := range []string{"ttl", "hand", "early", "early-ttl"} {
		uids[name] = s.active(t, west, name)
		s.recordedAs(t, name, func(status batchv1.JobStatus) bool { return status.Active == 1 })
	}
	expect := func(t *testing.T, name string, creates int) {
		t.Helper()
		if got := writes.byHubs()["CREATE jobs "+name]; got != creates {
			t.Errorf("Job %s was created %d times, want %d", name, got, creates)
		}
	}

	t.Run("removed by its TTL", func(t *testing.T) {
		s.completes(t, west, "ttl")
		s.gone(t, west, job("ttl"))
		s.recordedAs(t, "ttl", finished)
		s.pass(t, "after-ttl")
		expect(t, "ttl", 1)
	})
	t.Run("removed by hand when it had finished", func(t *testing.T) {
		s.completes(t, west, "hand")
		s.recordedAs(t, "hand", finished)
		s.remove(t, west, job("hand"))
		s.gone(t, west, job("hand"))
		s.pass(t, "after-hand")
		expect(t, "hand", 1)
	})
	t.Run("its binding and its Work are deleted", func(t *testing.T) {
		b := s.says(t, "hand-job", applied)
		uid := b.UID
		s.remove(t, s.hub, b)
		s.replaced(t, b, uid)
		s.recordedAs(t, "hand", finished)
		// A new Work learns from the status of the binding that the Job has finished, which the operator has heard of after this.
		s.pass(t, "after-binding")
		w, err := s.work(t.Context(), member1, "hand-job")
		if err != nil {
			t.Fatal(err)
		}
		uid = w.UID
		if err := s.hub.Delete(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		s.replaced(t, w, uid)
		s.recordedAs(t, "hand", finished)
		s.pass(t, "after-work")
		expect(t, "hand", 1)
	})
	for _, name := range []string{"early", "early-ttl"} {
		t.Run("removed by hand before it had finished: "+name, func(t *testing.T) {
			s.kubectl(t, west, "delete", "job", name)
			wait.Until(t, func(ctx context.Context) error {
				j := job(name)
				if err := west.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, j); err != nil {
					return err
				}
				if string(j.UID) == uids[name] {
					return errors.New("it is the old one")
				}
				return nil
			})
			expect(t, name, 2)
		})
	}
	t.Run("a changed template", func(t *testing.T) {
		template := job("ttl")
		s.change(t, s.hub, template, func() { labelled(template, "version", "2") })
		s.active(t, west, "ttl")
		s.completes(t, west, "ttl")
		s.gone(t, west, job("ttl"))
		s.pass(t, "after-change")
		expect(t, "ttl", 2)
	})
}

// Jobs that finish or are removed while the operator is down are not run again either.
func TestJobsFinishWhileOperatorIsDown(t *testing.T) {
	s := newStage(t)
	west := s.members[member1]
	writes := s.recordWrites(t, west)
	s.create(t, s.hub, policy("batch/v1", "Job"), job("seen"), job("missed", removedAfter(0)), job("early"), job("suspended", func(j *batchv1.Job) {
		j.Spec.Suspend = ptr.To(true)
		removedAfter(0)(j)
	}))
	for _, name := range []string{"seen", "missed", "early"} {
		s.active(t, west, name)
		s.recordedAs(t, name, func(status batchv1.JobStatus) bool { return status.Active == 1 })
	}
	s.recordedAs(t, "suspended", func(status batchv1.JobStatus) bool { return len(status.Conditions) == 1 })
	s.completes(t, west, "seen")
	s.recordedAs(t, "seen", finished)

	s.operator.Kill()
	s.completes(t, west, "missed")
	s.gone(t, west, job("missed"))
	for _, name := range []string{"seen", "early", "suspended"} {
		s.kubectl(t, west, "delete", "job", name)
		s.gone(t, west, job(name))
	}
	if err := s.operate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.operator.KeepLogOnFailure(t)
	for _, name := range []string{"early", "suspended"} {
		s.until(t, west, job(name), func() error { return nil })
	}
	s.recordedAs(t, "missed", func(status batchv1.JobStatus) bool { return status.Active == 0 })
	s.pass(t, "another")
	for name, creates := range map[string]int{"seen": 1, "missed": 1, "early": 2, "suspended": 2} {
		if got := writes.byHubs()["CREATE jobs "+name]; got != creates {
			t.Errorf("Job %s was created %d times, want %d", name, got, creates)
		}
	}
	for _, name := range []string{"seen", "missed"} {
		if err := west.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, job(name)); !apierrors.IsNotFound(err) {
			t.Errorf("Job %s is there: %v", name, err)
		}
	}
}

// A Job is suspended or not as its template says, whatever a user of the member does.
func TestSuspendedJob(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	west := s.members[member1]
	s.create(t, s.hub, policy("batch/v1", "Job"), job("held", func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), job("runs"))
	s.active(t, west, "runs")
	for name, suspended := range map[string]bool{"held": true, "runs": false} {
		s.says(t, name+"-job", applied)
		j := job(name)
		s.change(t, west, j, func() { j.Spec.Suspend = ptr.To(!suspended) })
		generation := j.Generation
		s.until(t, west, j, func() error {
			if j.Generation == generation || *j.Spec.Suspend != suspended {
				return fmt.Errorf("suspend is %t in generation %d", *j.Spec.Suspend, j.Generation)
			}
			return nil
		})
	}
}
