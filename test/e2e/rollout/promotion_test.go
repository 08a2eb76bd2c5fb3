package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/history"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// catchingUp is an environment whose second generation, of the image v2, is there and does not get ready to take over.
func (w *world) catchingUp(t testing.TB, also ...func(*v1alpha2.Materialize)) *environment {
	t.Helper()
	e := w.deployed(t, also...)
	e.daemon(2).Behave(environmentd.Manner{CatchesUp: true})
	e.edit(t, image("v2"))
	e.meets(t, tells(v1alpha2.ReasonApplying, "environmentd has not caught up yet"))
	return e
}

// TestChangedBeforePromoting: what is ready to take over is replaced by a clean generation of the new spec, even by who
// asks in the same breath to promote it.
func TestChangedBeforePromoting(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t)
	watched := e.watch(t)
	e.edit(t, image("v2"), strategy(v1alpha2.RolloutManuallyPromote))
	requested, before := e.says(t, v1alpha2.ReasonReadyToPromote).Status.RequestedRolloutHash, e.set(t, 2)
	e.edit(t, image("v3"), func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = requested })
	m := e.says(t, v1alpha2.ReasonReadyToPromote)
	if m.Status.RequestedRolloutHash == requested || m.Status.ActiveGeneration != 1 {
		t.Errorf("the request has not moved: %+v", m.Status)
	}
	if after := e.set(t, 2); after.UID == before.UID {
		t.Error("the generation of the old request was changed, and not replaced")
	}
	if asked := e.daemon(2).Asked(); len(asked) > 0 {
		t.Errorf("the environmentd of the old request was asked: %v", asked)
	}
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = m.Status.RequestedRolloutHash })
	e.serves(t, 2, "v3")
	watched.check(t)
}

func TestChangedWhilePromoting(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t)
	e.daemon(2).Behave(environmentd.Manner{Lingers: true})
	watched := e.watch(t)
	e.edit(t, image("v2"))
	requested := e.says(t, v1alpha2.ReasonPromoting).Status.RequestedRolloutHash
	e.edit(t, image("v3"))
	if m := e.says(t, v1alpha2.ReasonPromoting); m.Status.RequestedRolloutHash != requested {
		t.Error("the request has moved while it was promoting")
	}
	watched.check(t)
	e.daemon(3).Behave(environmentd.Manner{CatchesUp: true})
	e.daemon(2).Behave(environmentd.Manner{})
	wait.Until(t, func(ctx context.Context) error {
		m, err := e.get(ctx)
		if err == nil && m.Status.ActiveGeneration != 2 {
			err = fmt.Errorf("generation %d serves", m.Status.ActiveGeneration)
		}
		if err == nil && (m.Status.LastCompletedRolloutHash != requested || m.Status.LastCompletedRolloutEnvironmentdImageRef != "materialize/environmentd:v2") {
			t.Fatalf("completed is not what was promoted: %+v", m.Status)
		}
		return err
	})
	e.says(t, v1alpha2.ReasonApplying)
	e.daemon(3).CatchUp()
	e.serves(t, 3, "v3")
}

func TestManuallyPromote(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t)
	watched := e.watch(t)
	e.edit(t, image("v2"), strategy(v1alpha2.RolloutManuallyPromote))
	m := e.says(t, v1alpha2.ReasonReadyToPromote)
	for _, stale := range []string{m.Status.LastCompletedRolloutHash, "nonsense"} {
		e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = stale })
		e.says(t, v1alpha2.ReasonReadyToPromote)
	}
	if asked := e.daemon(2).Asked(); len(asked) > 0 {
		t.Errorf("it was asked without being told: %v", asked)
	}
	for _, app := range []string{"balancerd", "console"} {
		var d appsv1.Deployment
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: "mz" + m.Status.ResourceID + "-" + app}, &d); err != nil {
			t.Fatal(err)
		}
		if got := d.Spec.Template.Spec.Containers[0].Image; got != "materialize/"+app+":v1" {
			t.Errorf("%s is ahead of what serves, with %s", app, got)
		}
	}
	before := e.set(t, 2)
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = m.Status.RequestedRolloutHash })
	e.serves(t, 2, "v2")
	watched.check(t)
	if e.set(t, 2).UID != before.UID {
		t.Error("forcePromote has replaced what it was to promote")
	}
	if diff := cmp.Diff([]string{"skip-catchup", "promote"}, e.daemon(2).Asked()); diff != "" {
		t.Error(diff)
	}
	e.recorded(t,
		"RolloutRequested: creating generation 1 with materialize/environmentd:v1",
		"RolloutCompleted: generation 1 is active with materialize/environmentd:v1",
		"RolloutRequested: creating generation 2 with materialize/environmentd:v2",
		"Promoting: promoting generation 2; the promotion cannot be undone",
		"RolloutCompleted: generation 2 is active with materialize/environmentd:v2",
	)
}

// recorded waits until there are events of the resource with these reasons and notes.
func (e *environment) recorded(t testing.TB, all ...string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var events eventsv1.EventList
		if err := e.List(ctx, &events, client.InNamespace(e.namespace)); err != nil {
			return err
		}
		var recorded []string
		for _, event := range events.Items {
			if event.Regarding.Kind == v1alpha2.MaterializeKind {
				recorded = append(recorded, event.Reason+": "+event.Note)
			}
		}
		for _, want := range all {
			if !slices.Contains(recorded, want) {
				return fmt.Errorf("there is no event %q, only %q", want, recorded)
			}
		}
		return nil
	})
}

func TestForcePromote(t *testing.T) {
	t.Parallel()
	e := theWorld(t).catchingUp(t)
	watched := e.watch(t)
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = m.Status.RequestedRolloutHash })
	e.serves(t, 2, "v2")
	watched.check(t)
	if asked := e.daemon(2).Asked(); asked[0] != "skip-catchup" || asked[len(asked)-1] != "promote" {
		t.Errorf("asked %v", asked)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	e := theWorld(t).catchingUp(t)
	watched := e.watch(t)
	e.lateBy(t, 25*time.Hour)
	requested := e.now(t).Status.RolloutRequestedAt
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.BalancerdReplicas = ptr.To[int32](2) })
	m := e.says(t, v1alpha2.ReasonRolloutTimeout)
	if !m.Status.RolloutRequestedAt.Equal(requested) {
		t.Error("an edit elsewhere was taken for a request")
	}
	if said := condition(m).Message; !strings.HasSuffix(said, e.name(m, 2)+": environmentd has not caught up yet") {
		t.Errorf("it does not end in what was waited for: %s", said)
	}
	wait.Until(t, func(context.Context) error {
		if e.set(t, 2) != nil {
			return fmt.Errorf("generation 2 is still there")
		}
		return nil
	})
	watched.check(t)
	e.edit(t, func(m *v1alpha2.Materialize) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, fairlead.AnnotationPaused, "true")
	})
	e.meets(t, tells(v1alpha2.ReasonRolloutTimeout, "paused by annotation"))
	if result := e.command(t, "status"); result.Code != 1 {
		t.Errorf("paused, status ends with %d: %s", result.Code, result.Stdout)
	}
	e.edit(t, func(m *v1alpha2.Materialize) { delete(m.Annotations, fairlead.AnnotationPaused) })
	e.fleet.Replace(e.namespace + "/mz/2")
	e.edit(t, image("v3"))
	e.serves(t, 2, "v3")
}

// TestNoTimeoutWhilePromoting: there is no way back.
func TestNoTimeoutWhilePromoting(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t)
	e.daemon(2).Behave(environmentd.Manner{Lingers: true})
	e.edit(t, image("v2"))
	e.meets(t, tells(v1alpha2.ReasonPromoting, "environmentd is taking over leadership"))
	e.lateBy(t, 25*time.Hour)
	// When the operator has seen this, it has seen that it is late.
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.BalancerdReplicas = ptr.To[int32](2) })
	e.says(t, v1alpha2.ReasonPromoting)
	e.daemon(2).Behave(environmentd.Manner{})
	e.serves(t, 2, "v2")
}

// TestImmediatelyPromote: what serves is gone before the next generation starts.
func TestImmediatelyPromote(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t, strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime))
	m := e.now(t)
	e.daemon(2).Behave(environmentd.Manner{CatchesUp: true})
	pods := history.Follow[*corev1.Pod](t, e.WithWatch, &corev1.PodList{}, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha2.LabelApp: "environmentd"})
	e.edit(t, image("v2"))
	e.serves(t, 2, "v2")
	gone, started := -1, -1
	for i, event := range pods.Events(t) {
		switch {
		case event.Object.Name == e.name(m, 1)+"-0" && event.Type == watch.Deleted:
			gone = i
		case event.Object.Name == e.name(m, 2)+"-0" && started < 0:
			started = i
		}
	}
	if gone < 0 || started < gone {
		t.Errorf("what served was gone at event %d, and the next generation started at event %d", gone, started)
	}
	if diff := cmp.Diff([]string{"skip-catchup", "promote"}, e.daemon(2).Asked()); diff != "" {
		t.Error(diff)
	}
}

// TestImmediatelyPromoteReverted: what was ended to make room comes back.
func TestImmediatelyPromoteReverted(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t, strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime))
	m := e.now(t)
	e.daemon(2).Behave(environmentd.Manner{Resets: true})
	e.edit(t, image("v2"))
	wait.Until(t, func(ctx context.Context) error {
		return e.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: e.name(m, 2)}, &appsv1.StatefulSet{})
	})
	e.edit(t, image("v1"))
	e.serves(t, 1, "v1")
	if set := e.set(t, 1); set.Status.ReadyReplicas != 1 {
		t.Errorf("it is told to serve, and has %d pods ready", set.Status.ReadyReplicas)
	}
}

// TestRejectedByAPIServer: what the API server does not accept is said, with the object and the reason.
func TestRejectedByAPIServer(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.environment(t, func(m *v1alpha2.Materialize) { m.Spec.PodLabels = map[string]string{"not a label": "x"} })
	c := condition(e.says(t, v1alpha2.ReasonFailedDeploy))
	if want := "apply StatefulSet " + e.namespace + "/" + e.name(e.now(t), 1); !strings.HasPrefix(c.Message, want) {
		t.Errorf("it says %s", c.Message)
	}
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.PodLabels = nil })
	e.serves(t, 1, "v1")
}
