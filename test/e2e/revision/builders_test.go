package revision_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// shortName is one that no other test uses, with room for what is put behind it: names of revisions are bounded.
func shortName(t testing.TB) string {
	name := strings.TrimPrefix(cluster.Name(t), "test")
	words, number := name[:len(name)-6], name[len(name)-6:]
	return strings.TrimRight(words[:min(len(words), 16)], "-") + number
}

func inPlace(name, namespace, version string) *v1.Istio {
	return &v1.Istio{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.IstioSpec{Version: version, Namespace: namespace},
	}
}

// revisionBased prunes its old revisions after the grace period, in whole seconds.
func revisionBased(name, namespace, version string, grace time.Duration) *v1.Istio {
	istio := inPlace(name, namespace, version)
	istio.Spec.UpdateStrategy = v1.IstioUpdateStrategy{
		Type: v1.UpdateStrategyRevisionBased,
		InactiveRevisionDeletionGracePeriodSeconds: ptr.To(int64(grace / time.Second)),
	}
	return istio
}

// makeRevision is one that is made by hand.
func makeRevision(name, namespace, version string) *v1.IstioRevision {
	return &v1.IstioRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.IstioRevisionSpec{Version: version, Namespace: namespace},
	}
}

// makeTag refers to an Istio or an IstioRevision.
func makeTag(name, kind, target string) *v1.IstioRevisionTag {
	return &v1.IstioRevisionTag{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.IstioRevisionTagSpec{TargetRef: v1.TargetReference{Kind: kind, Name: target}},
	}
}

func makePod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
}

// createPod creates a pod as soon as its namespace has the ServiceAccount that pods get.
func (w *world) createPod(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error { return client.IgnoreAlreadyExists(w.Create(ctx, pod)) })
	harness.DeleteAfter(t, w, pod)
}

// unready are values that keep istiod's pods from becoming ready.
func unready() v1.Values {
	return v1.Values{"podAnnotations": map[string]any{cluster.ReadyAfter: cluster.Never}}
}

// namespace makes one with labels.
func (w *world) namespace(t testing.TB, labels ...string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shortName(t), Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		namespace.Labels[labels[i]] = labels[i+1]
	}
	return harness.Create(t, w, namespace).Name
}
