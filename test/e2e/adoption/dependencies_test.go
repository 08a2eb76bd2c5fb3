package adoption_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
)

func propagateDependencies(p *policyv1alpha1.PropagationSpec) { p.PropagateDeps = true }

// The dependencies of a workload are propagated with the workload, and stay in the members when the workload no longer
// refers to them.
func TestPropagateDependencies(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cart := deployment("cart")
	cart.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
	}}}
	s.create(t, s.hub, configMap("settings", "a", "1"), configMap("other"), cart, policy("apps/v1", "Deployment", propagateDependencies))
	s.says(t, "cart-deployment", applied)
	s.says(t, "settings-configmap", applied)
	s.tells(t, "everything", "Applied", "all 2 resources are applied")
	now := configMap("settings")
	s.until(t, s.members[member1], now, has(now, "a", "1"))
	s.gone(t, s.members[member1], configMap("other"))

	t.Run("a change of it goes along", func(t *testing.T) {
		template := configMap("settings")
		s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
		s.until(t, s.members[member1], now, has(now, "a", "2"))
	})
	t.Run("where the workload goes, it goes", func(t *testing.T) {
		s.changePolicy(t, policy("", ""), everywhere)
		s.until(t, s.members[member2], now, has(now, "a", "2"))
	})
	t.Run("what is not needed any more stays, and nothing on it speaks of the hub", func(t *testing.T) {
		template := deployment("cart")
		s.change(t, s.hub, template, func() { template.Spec.Template.Spec.Containers[0].EnvFrom = nil })
		s.released(t, "settings-configmap")
		for _, m := range s.members {
			s.until(t, m, now, func() error { return isClean(now) })
		}
	})
}

// A policy says of a dependency what became of it last, also if nothing else changes.
func TestDependencyConflictEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	job := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Spec: batchv1.CronJobSpec{Schedule: "0 3 * * *"}}
	job.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: "it", Image: "it", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
	}}}
	mine := configMap("settings", "a", "mine")
	s.create(t, s.members[member1], mine)
	s.create(t, s.hub, configMap("settings", "a", "hub"), job, policy("batch/v1", "CronJob", propagateDependencies))
	s.tells(t, "everything", "ResourceConflict", "1 of 2 resources exist already")
	s.remove(t, s.members[member1], mine)
	s.tells(t, "everything", "Applied", "all 2 resources are applied")
}

// Of a dependency that two policies bring, the aborted one restores the originals in clusters that it alone brought it to. Where the
// other goes too, the dependency stays taken over.
func TestAbortSharedDependency(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	requiring := func(name string, clusters ...string) (*appsv1.Deployment, *policyv1alpha1.PropagationPolicy) {
		d := deployment(name)
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
		}}}
		p := policy("apps/v1", "Deployment", propagateDependencies, overwrite)
		p.Name, p.Spec.ResourceSelectors[0].Name, p.Spec.Placement = name, name, to(clusters...)
		return d, p
	}
	cart, everywhere := requiring("cart", member1, member2)
	pay, one := requiring("pay", member1)
	for _, m := range s.members {
		s.create(t, m, configMap("settings", "a", "mine"))
	}
	s.create(t, s.hub, configMap("settings", "a", "hub"), cart, pay, everywhere, one)
	now := configMap("settings")
	for _, m := range s.members {
		s.until(t, m, now, has(now, "a", "hub"))
	}
	dependency := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "settings-configmap"}}
	s.until(t, s.hub, dependency, func() error {
		if len(dependency.Spec.RequiredBy) != 2 {
			return fmt.Errorf("the dependency is required by %+v", dependency.Spec.RequiredBy)
		}
		return nil
	})
	s.says(t, "settings-configmap", applied)
	if r := harness.RunCommand(t, s.hub.Cluster, "abort", "pp", "cart", "-n", s.namespace, "--yes"); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	s.until(t, s.members[member2], now, func() error { return isClean(now) })
	if now.Data["a"] != "mine" {
		t.Errorf("it has %v in the cluster that only the aborted policy went to", now.Data)
	}
	s.released(t, "cart-deployment")
	s.says(t, "settings-configmap", applied)
	s.read(t, s.members[member1], now)
	if now.Data["a"] != "hub" || !isMarked(now) {
		t.Errorf("it has %v, and labels %v, where the other policy goes", now.Data, now.Labels)
	}
}

// Where an autoscaler of a member decides on the replicas, the hub does not.
func TestAutoscaledReplicas(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	west := s.members[member1]
	s.create(t, west, deployment("cart"), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "cart"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart"},
			MinReplicas:    ptr.To[int32](1), MaxReplicas: 10,
		},
	})
	now := deployment("cart")
	s.change(t, west, now, func() { now.Spec.Replicas = ptr.To[int32](3) })
	template := deployment("cart")
	s.create(t, s.hub, template, policy("apps/v1", "Deployment", overwrite))
	s.says(t, "cart-deployment", applied)
	s.read(t, west, now)
	if *now.Spec.Replicas != 3 || !isMarked(now) {
		t.Errorf("it has %d replicas, and labels %v", *now.Spec.Replicas, now.Labels)
	}
	s.change(t, west, now, func() { now.Spec.Replicas = ptr.To[int32](4) })
	s.change(t, s.hub, template, func() { template.Spec.Template.Spec.Containers[0].Image = "cart:2" })
	s.until(t, west, now, func() error {
		if image := now.Spec.Template.Spec.Containers[0].Image; image != "cart:2" || *now.Spec.Replicas != 4 {
			return fmt.Errorf("it has image %s and %d replicas", image, *now.Spec.Replicas)
		}
		return nil
	})
}

// A kind that the hub does not have is told on the policy, and taken as soon as it has it.
func TestKindUnknownToHub(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create(t, s.hub, policy("boats.example/v1", "Boat"))
	s.tells(t, "everything", "KindNotFollowed", "the hub has no kind Boat in boats.example/v1: install its CRD on the hub")
}
