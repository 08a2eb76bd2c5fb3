package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// leftover is a ConfigMap with the labels of the hub, and no Work.
func (s *stage) leftover(t testing.TB, name string) *corev1.ConfigMap {
	t.Helper()
	system := &corev1.Namespace{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, system); err != nil {
		t.Fatal(err)
	}
	c := configMap(name)
	c.Labels = map[string]string{
		"karmada.io/managed": "true", "fairlead.dev/hub": string(system.UID), "fairlead.dev/work": digest("", "ConfigMap", s.namespace, name),
	}
	return c
}

// settleLeftovers sets the annotation that says what becomes of leftovers. Each change of it has the cluster searched.
func (w *world) settleLeftovers(ctx context.Context, t testing.TB, cluster, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"fairlead.dev/leftovers":%s}}}`, value)
	if err := w.hub.Patch(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// An object with the labels of the hub that the hub does not know of is reported, and stays until a user says what becomes of it. It
// does not run beside others, because it speaks of all leftovers of a member.
func TestLeftovers(t *testing.T) {
	s := newStage(t)
	member := s.members[member1]
	s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap"))
	s.says(t, "it-configmap", applied)
	managed := configMap("it")
	s.read(t, member, managed)
	s.create(t, member, s.leftover(t, "left"))
	t.Cleanup(func() { s.settleLeftovers(context.Background(), t, member1, "null") })

	s.settleLeftovers(t.Context(), t, member1, `"Report"`)
	wait.Until(t, func(ctx context.Context) error {
		var events eventsv1.EventList
		if err := s.hub.List(ctx, &events); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "Leftovers" && e.Regarding.Kind == "Cluster" && e.Regarding.Name == member1 && strings.Contains(e.Note, "no Work on the hub") {
				return nil
			}
		}
		return errors.New("no event tells of the leftover")
	})
	left := configMap("left")
	if s.read(t, member, left); !isMarked(left) {
		t.Errorf("nobody has said what becomes of the leftover, and its labels are %v", left.Labels)
	}

	s.settleLeftovers(t.Context(), t, member1, `"Release"`)
	s.until(t, member, left, func() error { return isClean(left) })

	s.settleLeftovers(t.Context(), t, member1, "null")
	s.create(t, member, s.leftover(t, "left-too"))
	s.settleLeftovers(t.Context(), t, member1, `"Delete"`)
	s.gone(t, member, configMap("left-too"))
	now := configMap("it")
	if s.read(t, member, now); now.ResourceVersion != managed.ResourceVersion {
		t.Errorf("the object with a Work was written to: %v", now.Labels)
	}
	s.read(t, member, configMap("left"))
}
