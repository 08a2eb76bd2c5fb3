package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// TestEvents: who looks at the resource sees what has happened to it.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t)
	e.edit(t, image("v2"), strategy(v1alpha2.RolloutManuallyPromote))
	e.says(t, v1alpha2.ReasonReadyToPromote)
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = m.Status.RequestedRolloutHash })
	e.serves(t, 2, "v2")
	eventually(t, func(ctx context.Context) error {
		var events eventsv1.EventList
		if err := w.List(ctx, &events, client.InNamespace(e.namespace)); err != nil {
			return err
		}
		var told []string
		for _, event := range events.Items {
			if event.Regarding.Kind == v1alpha2.MaterializeKind {
				told = append(told, event.Reason+": "+event.Note)
			}
		}
		for _, want := range []string{
			"RolloutRequested: generation 1 is made of materialize/environmentd:v1",
			"RolloutCompleted: generation 1 serves, with materialize/environmentd:v1",
			"RolloutRequested: generation 2 is made of materialize/environmentd:v2",
			"Promoting: generation 2 takes over, and nothing stops that any more",
			"RolloutCompleted: generation 2 serves, with materialize/environmentd:v2",
		} {
			if !slices.Contains(told, want) {
				return fmt.Errorf("nobody told %q, only %q", want, told)
			}
		}
		return nil
	})
}

// TestRefused: what the API server does not accept is said, with the object and the reason.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.environment(t, func(m *v1alpha2.Materialize) { m.Spec.PodLabels = map[string]string{"not a label": "x"} })
	c := condition(e.says(t, v1alpha2.ReasonFailedDeploy))
	if want := "apply StatefulSet " + e.namespace + "/" + e.name(e.now(t), 1); len(c.Message) < len(want) || c.Message[:len(want)] != want {
		t.Errorf("it says %s", c.Message)
	}
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.PodLabels = nil })
	e.serves(t, 1, "v1")
}
