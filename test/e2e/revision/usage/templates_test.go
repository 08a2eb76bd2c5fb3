package usage_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// What will run counts, though nothing runs: here there are no controllers that would make pods.
func TestPodTemplatesAreSeen(t *testing.T) {
	s := newWorld(t)
	revision, next, shop := s.name("rev"), s.name("next"), s.Namespace(t)
	named := func(workload client.Object) client.Object { return templated(workload, shop, revision) }
	report, load := named(&batchv1.CronJob{}), named(&batchv1.Job{})
	cart, agent := named(&appsv1.Deployment{}), named(&appsv1.DaemonSet{})
	lone, db := named(&appsv1.ReplicaSet{}), named(&appsv1.StatefulSet{})
	for _, workload := range []client.Object{report, load, cart, agent, lone, db} {
		s.create(workload)
	}
	uses := func(count, names string) {
		t.Helper()
		s.revision(revision, fmt.Sprintf("%s: %s", count, names))
		s.tag(revision, fmt.Sprintf("%s: %s", count, names))
	}
	uses("6 workloads", fmt.Sprintf("CronJob %[1]s/app, DaemonSet %[1]s/app, Deployment %[1]s/app, Job %[1]s/app, ReplicaSet %[1]s/app, and 1 more", shop))

	t.Log("the namespace decides, and no longer the templates")
	s.label(namespaceNamed(shop), v1.LabelRevision, next)
	s.revision(revision, "nothing refers to this name")
	s.tag(next, "1 namespace: Namespace "+shop)
	s.label(namespaceNamed(shop), v1.LabelRevision, "")
	s.delete(agent)
	uses("5 workloads", fmt.Sprintf("CronJob %[1]s/app, Deployment %[1]s/app, Job %[1]s/app, ReplicaSet %[1]s/app, StatefulSet %[1]s/app", shop))

	t.Log("a Job finishes")
	job := load.(*batchv1.Job)
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
	}
	if err := s.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	s.delete(db)
	s.delete(report)
	uses("2 workloads", fmt.Sprintf("Deployment %[1]s/app, ReplicaSet %[1]s/app", shop))

	t.Log("a Deployment moves on, and its history does not count")
	old := templated(&appsv1.ReplicaSet{}, shop, revision)
	old.SetName("app-before")
	old.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: cart.GetName(), UID: cart.GetUID(), Controller: ptr.To(true)},
	})
	s.create(old)
	move := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"labels":{%q:%q}}}}}`, v1.LabelRevision, next))
	if err := s.Patch(t.Context(), cart, move); err != nil {
		t.Fatal(err)
	}
	s.revision(next, fmt.Sprintf("1 workload: Deployment %s/app", shop))
	uses("1 workload", fmt.Sprintf("ReplicaSet %s/app", shop))
	s.delete(lone)
	s.revision(revision, "nothing refers to this name")

	t.Log("the Deployment is deleted, and leaves its ReplicaSet behind")
	s.orphan(old)
	uses("1 workload", fmt.Sprintf("ReplicaSet %s/app-before", shop))
	s.delete(old)
	s.revision(revision, "nothing refers to this name")
}

// templated is a workload "app" that has no pods, and whose pod template names a revision.
func templated(workload client.Object, namespace, revision string) client.Object {
	app := map[string]string{"app": "app"}
	selector := &metav1.LabelSelector{MatchLabels: app}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "app", v1.LabelRevision: revision}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.org/app"}}},
	}
	once := *template.DeepCopy()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	workload.SetNamespace(namespace)
	workload.SetName("app")
	switch w := workload.(type) {
	case *batchv1.CronJob:
		w.Spec.Schedule, w.Spec.JobTemplate.Spec.Template = "0 3 * * *", once
	case *batchv1.Job:
		w.Spec.Template = once
	case *appsv1.Deployment:
		w.Spec = appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Selector: selector, Template: template}
	case *appsv1.DaemonSet:
		w.Spec = appsv1.DaemonSetSpec{Selector: selector, Template: template}
	case *appsv1.ReplicaSet:
		w.Spec = appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), Selector: selector, Template: template}
	case *appsv1.StatefulSet:
		w.Spec = appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0), Selector: selector, Template: template}
	}
	return workload
}
