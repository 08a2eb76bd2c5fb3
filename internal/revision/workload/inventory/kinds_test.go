package inventory

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// TestFromOtherKinds has what is read of StatefulSets and DaemonSets.
func TestFromOtherKinds(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "7", Generation: 3, Labels: map[string]string{"app": "db"}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{v1.LabelRevision: "r", "app": "db", "gateway.networking.k8s.io/gateway-name": "front"},
		Annotations: map[string]string{v1.AnnotationRevision: "r", v1.AnnotationRestartedAt: "now"},
	}}
	statefulSet := func(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), Template: template}}
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: 3, Replicas: 4, UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1}
		change(s)
		return s
	}
	want := func(kind string, change func(*Workload)) *Workload {
		w := &Workload{
			Kind:       kind,
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "7", Generation: 3},
			PodLabels:  map[string]string{v1.LabelRevision: "r"}, PodAnnotations: map[string]string{v1.AnnotationRevision: "r"}, Gateway: "front",
			Replicas: 3, Rollout: Rollout{ObservedGeneration: 3, Replicas: 4, Updated: 3, Ready: 2, Available: 1},
		}
		change(w)
		return w
	}
	for name, tc := range map[string]struct {
		object any
		want   *Workload
	}{
		"StatefulSet": {statefulSet(func(*appsv1.StatefulSet) {}), want("StatefulSet", func(w *Workload) { w.Ordered = true })},
		"StatefulSet without replicas": {
			statefulSet(func(s *appsv1.StatefulSet) { s.Spec.Replicas = nil }),
			want("StatefulSet", func(w *Workload) { w.Replicas, w.Ordered = 1, true }),
		},
		"StatefulSet in parallel, with a partition": {
			statefulSet(func(s *appsv1.StatefulSet) {
				s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
				s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
			}),
			want("StatefulSet", func(w *Workload) { w.Partition = 2 }),
		},
		"StatefulSet by OnDelete, with a partition of before": {
			statefulSet(func(s *appsv1.StatefulSet) {
				s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
				s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
			}),
			want("StatefulSet", func(w *Workload) { w.OnDelete, w.Ordered = true, true }),
		},
		"DaemonSet by OnDelete": {
			&appsv1.DaemonSet{
				ObjectMeta: meta,
				Spec: appsv1.DaemonSetSpec{
					Template: template, UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
				},
				Status: appsv1.DaemonSetStatus{
					ObservedGeneration: 3, DesiredNumberScheduled: 3, CurrentNumberScheduled: 4, UpdatedNumberScheduled: 3, NumberReady: 2, NumberAvailable: 1,
				},
			},
			want("DaemonSet", func(w *Workload) { w.OnDelete = true }),
		},
	} {
		t.Run(name, func(t *testing.T) { expect(t, "read", tc.want, From(tc.object)) })
	}
}

// Workloads of all kinds are in one inventory, and may have the same name.
func TestKindsInOneInventory(t *testing.T) {
	f := follow(t)
	meta := makeDeployment("shop/cart", "", 1).ObjectMeta
	f.deployments.Add(makeDeployment("shop/cart", "", 1))
	f.statefulSets.Add(&appsv1.StatefulSet{ObjectMeta: meta})
	f.daemonSets.Add(&appsv1.DaemonSet{ObjectMeta: meta})
	kinds := func() []string {
		var all []string
		for _, w := range f.Snapshot().Workloads {
			all = append(all, w.Kind)
		}
		return all
	}
	expect(t, "in their order", []string{"DaemonSet", "Deployment", "StatefulSet"}, kinds())
	for _, kind := range kinds() {
		if w := f.Snapshot().Find(kind, "shop", "cart"); w == nil || w.Kind != kind {
			t.Errorf("%s is not found: %v", kind, w)
		}
	}
	f.statefulSets.Delete(&appsv1.StatefulSet{ObjectMeta: meta})
	expect(t, "without one", []string{"DaemonSet", "Deployment"}, kinds())
}

func TestCronJobs(t *testing.T) {
	f := follow(t)
	name := types.NamespacedName{Namespace: "shop", Name: "report"}
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "report"}}
	cronJob.Spec.JobTemplate.Spec.Template.Labels = map[string]string{v1.LabelRevision: "old", "app": "report"}
	changes := func(want int, do func(), cronJobs map[types.NamespacedName]map[string]string) {
		t.Helper()
		if n := f.changed(do); n != want {
			t.Errorf("%d changes, want %d", n, want)
		}
		expect(t, "CronJobs", cronJobs, f.Snapshot().CronJobs)
	}
	old := map[types.NamespacedName]map[string]string{name: {v1.LabelRevision: "old"}}
	changes(1, func() { f.cronJobs.Add(cronJob) }, old)
	run := cronJob.DeepCopy()
	run.Status.LastScheduleTime = &metav1.Time{}
	changes(0, func() { f.cronJobs.Update(cronJob, run) }, old)
	labelled := run.DeepCopy()
	labelled.Spec.JobTemplate.Spec.Template.Labels[v1.LabelRevision] = "new"
	changes(1, func() { f.cronJobs.Update(run, labelled) }, map[types.NamespacedName]map[string]string{name: {v1.LabelRevision: "new"}})
	changes(1, func() { f.cronJobs.Delete(labelled) }, map[types.NamespacedName]map[string]string{})
	listed := New(func(Change) {})
	listed.ObserveWorkload(cronJob)
	expect(t, "listed", old, listed.Snapshot().CronJobs)
}

func TestSamples(t *testing.T) {
	f := follow(t)
	debug := Owner{"v1", "Pod", "shop", "debug"}
	pod := makePod("debug", "", "old")
	f.pods.Add(pod)
	labelled := pod.DeepCopy()
	labelled.Labels = map[string]string{v1.LabelRevision: "r", "app": "debug"}
	if n := f.changed(func() { f.pods.Update(nil, labelled) }); n != 1 {
		t.Errorf("another label of a pod is %d changes", n)
	}
	expect(t, "sample", Sample{"debug", map[string]string{v1.LabelRevision: "r"}}, f.Snapshot().Samples[debug])
	f.pods.Delete(labelled)
	expect(t, "samples of pods that are gone", map[Owner]Sample{}, f.Snapshot().Samples)
}
