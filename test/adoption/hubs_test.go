package adoption_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/test/cluster"
)

// An object that one hub manages stays that hub's, whatever another one asks for: each write to it is the first hub's.
func TestTwoHubs(t *testing.T) {
	t.Parallel()
	first := newStage(t)
	hub := cluster.Start(t, cluster.Options{Profile: "hub", KeepNamespaces: true})
	w, err := begin(t, hub, map[string]*cluster.Cluster{member1: first.members[member1].Cluster}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.operator.Kill)
	w.operator.ShowTo(t)
	second := &stage{w, first.namespace}
	if err := w.hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second.namespace}}); err != nil {
		t.Fatal(err)
	}
	member := first.members[member1]
	first.create(t, first.hub, deployment("it"), policy("apps/v1", "Deployment"))
	first.says(t, "it-deployment", applied)
	before := first.running(t, member, "it")

	template := deployment("it")
	template.Spec.MinReadySeconds = 2
	second.create(t, second.hub, template, policy("apps/v1", "Deployment", overwrite))
	says := "Deployment " + first.namespace + "/it in cluster member1 is managed by another hub, and is left alone: release it there, or delete it here"
	second.trouble(t, member1, "it-deployment", "everything", conflict, says)

	t.Run("the first goes on, and the second has no say", func(t *testing.T) {
		second.change(t, second.hub, template, func() { template.Spec.MinReadySeconds = 3 })
		own := deployment("it")
		first.change(t, first.hub, own, func() { own.Spec.MinReadySeconds = 1 })
		second.says(t, "it-deployment", conflict, says)
		now := deployment("it")
		first.until(t, member, now, minReady(now, 1))
		if now.Generation != before.Generation+1 {
			t.Errorf("generation %d became %d with one change of the first hub", before.Generation, now.Generation)
		}
	})
	t.Run("what the second deletes stays", func(t *testing.T) {
		second.remove(t, second.hub, deployment("it"))
		second.gone(t, second.hub, deployment("it"))
		now := first.running(t, member, "it")
		if now.UID != before.UID || !isMarked(now) {
			t.Errorf("it is another one, with labels %v", now.Labels)
		}
	})
}
