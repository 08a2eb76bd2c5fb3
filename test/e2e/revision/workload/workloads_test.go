package workload_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/injector"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// labelMesh is on the workloads of a mesh and on their namespaces, with the name of its Istio.
const labelMesh = "test.fairlead.dev/mesh"

// builder of Deployments. Each has one pod unless told otherwise.
type builder struct{ d *appsv1.Deployment }

func makeDeployment(namespace, name string) builder {
	app := map[string]string{"app": name}
	return builder{&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(app), Annotations: map[string]string{}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: name}}},
			},
		},
	}}
}

func (b builder) replicas(n int32) builder {
	b.d.Spec.Replicas = &n
	return b
}

// podLabel is one of the pod template.
func (b builder) podLabel(key, value string) builder {
	b.d.Spec.Template.Labels[key] = value
	return b
}

// sickOn keeps its pods from becoming ready on a revision.
func (b builder) sickOn(revision string) builder { return b.podLabel(injector.LabelSickOn, revision) }

// heldOn keeps its pods from becoming ready on a revision until the test releases them.
func (b builder) heldOn(revision string) builder { return b.podLabel(injector.LabelHeldOn, revision) }

// readyAfter makes its pods take their time.
func (b builder) readyAfter(time string) builder {
	b.d.Spec.Template.Annotations[cluster.ReadyAfter] = time
	return b
}

func (b builder) annotate(key, value string) builder {
	b.d.Annotations[key] = value
	return b
}

// rolls says how far a rolling update may go below and above the number of replicas.
func (b builder) rolls(maxUnavailable, maxSurge intstr.IntOrString) builder {
	b.d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &maxUnavailable, MaxSurge: &maxSurge},
	}
	return b
}

func (b builder) with(change func(*appsv1.Deployment)) builder {
	change(b.d)
	return b
}

// deploy makes workloads, and waits until they run on a revision.
func (m *mesh) deploy(t testing.TB, revision string, builders ...builder) {
	t.Helper()
	for _, b := range builders {
		m.injects(t, b, revision)
		b.d.Labels[labelMesh] = m.istio.Name
		if err := m.Create(t.Context(), b.d); err != nil {
			t.Fatalf("create Deployment %s/%s: %v", b.d.Namespace, b.d.Name, err)
		}
	}
	for _, b := range builders {
		m.runs(t, b, revision)
	}
}

// injects waits until the API server gives a pod of a workload the sidecar of a revision. It takes a moment to know of new
// labels and webhooks, and a pod that is created before that stays as it is.
func (m *mesh) injects(t testing.TB, b builder, revision string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		pod, err := m.dryRunPod(ctx, b.d)
		if err != nil {
			return fmt.Errorf("create a pod of Deployment %s/%s as a dry run: %w", b.d.Namespace, b.d.Name, err)
		}
		if got := pod.Annotations[v1.AnnotationRevision]; got != revision {
			return fmt.Errorf("a pod of Deployment %s/%s would be injected by revision %q, want %q", b.d.Namespace, b.d.Name, got, revision)
		}
		return nil
	})
}

// dryRunPod is a pod of a workload as the API server would create it now.
func (m *mesh) dryRunPod(ctx context.Context, d *appsv1.Deployment) (*corev1.Pod, error) {
	template := d.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = d.Namespace, d.Name+"-dry-run"
	return pod, m.Create(ctx, pod, client.DryRunAll)
}

// release lets held pods of workloads become ready, those that come included.
func (m *mesh) release(t testing.TB, builders ...builder) {
	t.Helper()
	for _, b := range builders {
		m.Release(t, b.d.Namespace, cluster.ReadyAfter, b.d.Spec.Selector.MatchLabels)
	}
}

// moves waits until a workload is being moved to a revision, or has been.
func (m *mesh) moves(t testing.TB, b builder, revision string) {
	t.Helper()
	harness.WaitFor(t, m.world, b.d, func(d *appsv1.Deployment) error {
		if markOf(t, d).Target != revision {
			return fmt.Errorf("it is not being moved to %s", revision)
		}
		return nil
	})
}

// runs waits until all pods of a workload, and no others, are ready and were injected by a revision.
func (m *mesh) runs(t testing.TB, b builder, revision string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		if err := m.Get(ctx, client.ObjectKeyFromObject(b.d), b.d); err != nil {
			return err
		}
		if !complete(b.d) {
			return fmt.Errorf("Deployment %s/%s is not ready: %+v", b.d.Namespace, b.d.Name, b.d.Status)
		}
		found, err := m.injectedBy(ctx, b.d)
		if err != nil {
			return err
		}
		want := map[string]int{}
		if n := int(*b.d.Spec.Replicas); n > 0 {
			want[revision] = n
		}
		if !maps.Equal(found, want) {
			return fmt.Errorf("the pods of Deployment %s/%s run %v, and should run %v", b.d.Namespace, b.d.Name, found, want)
		}
		return nil
	})
}

// hasPodsOn waits until some pod of a workload was injected by a revision.
func (m *mesh) hasPodsOn(t testing.TB, b builder, revision string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		found, err := m.injectedBy(ctx, b.d)
		if err == nil && found[revision] == 0 {
			err = fmt.Errorf("no pod of Deployment %s/%s runs %s: %v", b.d.Namespace, b.d.Name, revision, found)
		}
		return err
	})
}

// injectedBy counts the pods of a Deployment by the revision that injected them.
func (w *world) injectedBy(ctx context.Context, d *appsv1.Deployment) (map[string]int, error) {
	var pods corev1.PodList
	if err := w.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			found[pod.Annotations[v1.AnnotationRevision]]++
		}
	}
	return found, nil
}

// complete tells whether nothing but new pods is there, and all of them are available.
func complete(d *appsv1.Deployment) bool {
	desired := ptr.Deref(d.Spec.Replicas, 1)
	s := d.Status
	return s.ObservedGeneration >= d.Generation &&
		s.Replicas == desired && s.UpdatedReplicas == desired && s.ReadyReplicas == desired && s.AvailableReplicas == desired
}

// rollouts is how often the pod template of a workload has been another one, its first included.
func (m *mesh) rollouts(t testing.TB, b builder) string {
	t.Helper()
	if err := m.Get(t.Context(), client.ObjectKeyFromObject(b.d), b.d); err != nil {
		t.Fatal(err)
	}
	return b.d.Annotations["deployment.kubernetes.io/revision"]
}

// restartedOnce checks that workloads have been restarted once since they were made.
func (m *mesh) restartedOnce(t testing.TB, builders ...builder) {
	t.Helper()
	for _, b := range builders {
		if got := m.rollouts(t, b); got != "2" {
			t.Errorf("Deployment %s/%s is at rollout %s, want it restarted once", b.d.Namespace, b.d.Name, got)
		}
	}
}

// untouched checks that workloads are as they were made.
func (m *mesh) untouched(t testing.TB, builders ...builder) {
	t.Helper()
	for _, b := range builders {
		made := b.d.DeepCopy()
		if err := m.Get(t.Context(), client.ObjectKeyFromObject(b.d), b.d); err != nil {
			t.Fatal(err)
		}
		if b.d.Generation != made.Generation || b.d.Annotations[v1.AnnotationMigration] != made.Annotations[v1.AnnotationMigration] {
			t.Errorf("Deployment %s/%s was written to: %v", b.d.Namespace, b.d.Name, b.d.Annotations)
		}
	}
}
