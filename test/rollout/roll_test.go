package rollout_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

func TestDeployAndRoll(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t)
	first := e.now(t)
	if id := first.Status.ResourceID; len(id) != 10 {
		t.Errorf("resourceId %q", id)
	}
	if got := string(first.Status.EnvironmentID); got != string(first.UID) {
		t.Errorf("environmentId %s, want what follows from the UID %s", got, first.UID)
	}
	if first.Status.LastCompletedRolloutHash == "" || first.Status.LastCompletedRolloutHash != first.Status.RequestedRolloutHash {
		t.Errorf("hashes: %+v", first.Status)
	}
	watched := e.watch(t)
	e.edit(t, image("v2"))
	second := e.serves(t, 2, "v2")
	if second.Status.LastCompletedRolloutHash == first.Status.LastCompletedRolloutHash {
		t.Error("two specs have one hash")
	}
	if second.Status.ResourceID != first.Status.ResourceID {
		t.Error("the resourceId has changed")
	}
	for generation := range int64(2) {
		if diff := cmp.Diff([]string{"promote"}, e.daemon(generation+1).Asked()); diff != "" {
			t.Errorf("generation %d: %s", generation+1, diff)
		}
	}
	watched.check(t)

	// Between two statuses that are the same, it does not change.
	if a, b := condition(first), condition(second); a.Status != metav1.ConditionTrue || b.Status != metav1.ConditionTrue || b.LastTransitionTime.Before(&a.LastTransitionTime) {
		t.Errorf("conditions: %+v, %+v", a, b)
	}
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = "nothing" })
	if a, b := condition(second), condition(e.says(t, v1alpha2.ReasonApplied)); !a.LastTransitionTime.Equal(&b.LastTransitionTime) {
		t.Errorf("the transition was at %s, and now at %s", a.LastTransitionTime, b.LastTransitionTime)
	}
}
