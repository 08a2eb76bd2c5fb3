package materialize

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/internal/rollout/hash"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func code(err error) int { return console.ExitCode(err, true) }

// spec makes a Materialize of an image, and of what else is changed about it.
func spec(tag string, changes ...func(*v1alpha2.Materialize)) *v1alpha2.Materialize {
	m := &v1alpha2.Materialize{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mz", UID: "u1", Generation: 1, ResourceVersion: "7"}}
	m.Spec.EnvironmentdImageRef, m.Spec.BackendSecretName = "materialize/environmentd:"+tag, "backend"
	m.Spec.RolloutStrategy, m.Spec.RolloutRequestTimeout = v1alpha2.RolloutWaitUntilReady, "1h"
	m.Spec.BalancerdReplicas, m.Spec.ConsoleReplicas = ptr.To[int32](2), ptr.To[int32](2)
	for _, change := range changes {
		change(m)
	}
	return m
}

func balancerds(n int32) func(*v1alpha2.Materialize) {
	return func(m *v1alpha2.Materialize) { m.Spec.BalancerdReplicas = &n }
}

// digestAlone is an image that tells nothing of the others.
func digestAlone(m *v1alpha2.Materialize) {
	m.Spec.EnvironmentdImageRef = "materialize/environmentd@sha256:0123"
}

func strategy(s v1alpha2.RolloutStrategy) func(*v1alpha2.Materialize) {
	return func(m *v1alpha2.Materialize) { m.Spec.RolloutStrategy = s }
}

func annotated(key, value string) func(*v1alpha2.Materialize) {
	return func(m *v1alpha2.Materialize) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value) }
}

// scene is an environment at some point of its rollout.
type scene struct {
	m *v1alpha2.Materialize
	// serves was rolled out completely as generation 1, requested is being rolled out. Nil: nothing is.
	serves, requested *v1alpha2.Materialize
	// ignored is what was promoted by somebody before it was requested.
	ignored *v1alpha2.Materialize
	// unrecorded generations were made from nobody knows what.
	unrecorded bool
	// ended holds when the pods of generation 1 have made room.
	ended   bool
	phase   v1alpha2.Reason
	message string
	leader  v1alpha2.LeaderStatus
	counted *v1alpha2.PodCount
	after   time.Duration
	pods    []corev1.Pod
}

func (s scene) environment(t *testing.T) environment {
	t.Helper()
	m := s.m.DeepCopy()
	o := rollout.Observed{Materialize: m, HashVersion: hash.Version, Generations: map[int64]*rollout.Generation{}, Leader: v1alpha2.LeaderAnswer{Status: s.leader}}
	o.Hash = hashOf(t, m)
	generation := func(number int64, of *v1alpha2.Materialize) {
		g := &rollout.Generation{Number: number, Hash: hashOf(t, of), StatefulSet: &appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{ReadyReplicas: 1}}}
		if !s.unrecorded {
			g.Record = &objects.Record{Materialize: of, StatefulSet: newObject(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		}
		o.Generations[number] = g
	}
	m.Status.ResourceID, m.Status.EnvironmentID, m.Status.RolloutHashVersion = "a1b2c3d4e5", "8f5d1e0a-57a5-4c6e-8a3c-2f1d1f8f0b11", hash.Version
	m.Status.ObservedGeneration = m.Generation
	if s.serves != nil {
		m.Status.ActiveGeneration = 1
		m.Status.LastCompletedRolloutHash = hashOf(t, s.serves)
		m.Status.LastCompletedRolloutEnvironmentdImageRef = s.serves.Spec.EnvironmentdImageRef
		m.Status.RequestedRolloutHash = m.Status.LastCompletedRolloutHash
		generation(1, s.serves)
		if s.ended {
			o.Generations[1].StatefulSet = nil
		}
	}
	if s.requested != nil {
		m.Status.RequestedRolloutHash = hashOf(t, s.requested)
		m.Status.RolloutRequestedAt = ptr.To(metav1.NewTime(now.Add(-s.after)))
		if s.phase != v1alpha2.ReasonRolloutTimeout {
			generation(m.Status.ActiveGeneration+1, s.requested)
		}
	}
	if s.ignored != nil {
		m.Status.IgnoredForcePromote = hashOf(t, s.ignored)
	}
	if s.counted != nil {
		m.Status.Progress = &v1alpha2.RolloutProgress{Generation: m.Status.ActiveGeneration + 1, Pods: s.counted}
	}
	if s.phase != "" {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
			Type: v1alpha2.ConditionUpToDate, Status: metav1.ConditionUnknown, Reason: string(s.phase), Message: s.message,
		})
	}
	return environment{Observed: o, pods: s.pods}
}

func hashOf(t *testing.T, m *v1alpha2.Materialize) string {
	t.Helper()
	return hash.Of(m)
}

func makePod(name string, ready bool, waiting string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-30 * time.Second))}}
	pod.Status.Phase = corev1.PodRunning
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	if waiting != "" {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waiting}}}}
	}
	return pod
}
