package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// environment is a Materialize in a namespace of its own.
type environment struct {
	*world
	namespace string
	// resource is the name of the Materialize.
	resource string
}

// namespaced is an environment that has yet to be made. It ends with the test, or operators of other tests would look
// after it.
func (w *world) namespaced(t testing.TB, resource string) *environment {
	t.Helper()
	e := &environment{w, w.Namespace(t), resource}
	t.Cleanup(func() {
		if err := w.Delete(context.Background(), e.materialize()); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return e
}

// environment makes one, of the image v1, which may be something else besides.
func (w *world) environment(t testing.TB, also ...func(*v1alpha2.Materialize)) *environment {
	t.Helper()
	e := w.namespaced(t, "mz")
	if err := w.Create(t.Context(), e.materialize(also...)); err != nil {
		t.Fatal(err)
	}
	return e
}

// deployed is an environment whose first generation serves.
func (w *world) deployed(t testing.TB, also ...func(*v1alpha2.Materialize)) *environment {
	t.Helper()
	e := w.environment(t, also...)
	e.serves(t, 1, "v1")
	return e
}

func (e *environment) materialize(also ...func(*v1alpha2.Materialize)) *v1alpha2.Materialize {
	m := &v1alpha2.Materialize{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.resource}}
	m.Spec.BackendSecretName = "backend"
	m.Spec.BalancerdReplicas, m.Spec.ConsoleReplicas = ptr.To[int32](1), ptr.To[int32](1)
	image("v1")(m)
	for _, change := range also {
		change(m)
	}
	return m
}

func image(tag string) func(*v1alpha2.Materialize) {
	return func(m *v1alpha2.Materialize) { m.Spec.EnvironmentdImageRef = "materialize/environmentd:" + tag }
}

func strategy(s v1alpha2.RolloutStrategy) func(*v1alpha2.Materialize) {
	return func(m *v1alpha2.Materialize) { m.Spec.RolloutStrategy = s }
}

func (e *environment) get(ctx context.Context) (*v1alpha2.Materialize, error) {
	m := &v1alpha2.Materialize{}
	return m, e.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: e.resource}, m)
}

func (e *environment) now(t testing.TB) *v1alpha2.Materialize {
	t.Helper()
	m, err := e.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// edit changes the resource as its owner does.
func (e *environment) edit(t testing.TB, changes ...func(*v1alpha2.Materialize)) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		m, err := e.get(ctx)
		if err != nil {
			return err
		}
		for _, change := range changes {
			change(m)
		}
		if err = e.Update(ctx, m); err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err
	})
}

func condition(m *v1alpha2.Materialize) metav1.Condition {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha2.ConditionUpToDate); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// says waits until the condition has a reason, and speaks of the spec as it is.
func (e *environment) says(t testing.TB, reason v1alpha2.Reason) *v1alpha2.Materialize {
	t.Helper()
	var m *v1alpha2.Materialize
	wait.Until(t, func(ctx context.Context) (err error) {
		if m, err = e.get(ctx); err != nil {
			return err
		}
		if c := condition(m); c.Reason != string(reason) || c.ObservedGeneration != m.Generation {
			return fmt.Errorf("want %s of generation %d, got %s of generation %d: %s", reason, m.Generation, c.Reason, c.ObservedGeneration, c.Message)
		}
		return nil
	})
	return m
}

// meets waits until it has happened.
func (e *environment) meets(t testing.TB, all ...meets) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		m, err := e.get(ctx)
		if err != nil {
			return err
		}
		for _, meets := range all {
			if err := meets(e, m); err != nil {
				return err
			}
		}
		return nil
	})
}

// meets is something that a test waits for.
type meets func(*environment, *v1alpha2.Materialize) error

// tells: the condition has a reason, and these words in its message.
func tells(reason v1alpha2.Reason, words string) meets {
	return func(_ *environment, m *v1alpha2.Materialize) error {
		if c := condition(m); c.Reason != string(reason) || !strings.Contains(c.Message, words) {
			return fmt.Errorf("want %s with %q, got %s: %s", reason, words, c.Reason, c.Message)
		}
		return nil
	}
}

// asked: the environmentd of a generation was asked to take over so many times.
func asked(generation int64, times int) meets {
	return func(e *environment, _ *v1alpha2.Materialize) error {
		asked := slices.DeleteFunc(e.daemon(generation).Asked(), func(what string) bool { return what != "promote" })
		if len(asked) < times {
			return fmt.Errorf("asked to take over %d times, want %d", len(asked), times)
		}
		return nil
	}
}

// holds: the environmentd of a generation holds so many requests of a kind.
func holds(generation int64, kind string, want int) meets {
	return func(e *environment, _ *v1alpha2.Materialize) error {
		if got := e.daemon(generation).Holding(kind); got != want {
			return fmt.Errorf("environmentd holds %d requests to %s, want %d", got, kind, want)
		}
		return nil
	}
}

// lateBy has the rollout be asked for so much earlier than it was.
func (e *environment) lateBy(t testing.TB, d time.Duration) {
	t.Helper()
	m := e.now(t)
	earlier := m.DeepCopy()
	earlier.Status.RolloutRequestedAt = ptr.To(metav1.NewTime(m.Status.RolloutRequestedAt.Add(-d)))
	if err := e.Status().Patch(t.Context(), earlier, client.MergeFrom(m)); err != nil {
		t.Fatal(err)
	}
}

// serves waits until a generation of an image serves, and nothing is left of others.
func (e *environment) serves(t testing.TB, generation int64, tag string) *v1alpha2.Materialize {
	t.Helper()
	var m *v1alpha2.Materialize
	wait.Until(t, func(ctx context.Context) (err error) {
		if m, err = e.get(ctx); err != nil {
			return err
		}
		c := condition(m)
		if c.Reason != string(v1alpha2.ReasonApplied) || m.Status.ActiveGeneration != generation || c.ObservedGeneration != m.Generation {
			return fmt.Errorf("want generation %d to serve, got %d, %s: %s", generation, m.Status.ActiveGeneration, c.Reason, c.Message)
		}
		return e.complete(ctx, m, tag)
	})
	return m
}

// complete says what is missing of an environment, or too much.
func (e *environment) complete(ctx context.Context, m *v1alpha2.Materialize, tag string) error {
	if want := "materialize/environmentd:" + tag; m.Status.LastCompletedRolloutEnvironmentdImageRef != want {
		return fmt.Errorf("status has image %s, want %s", m.Status.LastCompletedRolloutEnvironmentdImageRef, want)
	}
	var sets appsv1.StatefulSetList
	if err := e.List(ctx, &sets, client.InNamespace(e.namespace)); err != nil {
		return err
	}
	if len(sets.Items) != 1 || sets.Items[0].Name != e.name(m, m.Status.ActiveGeneration) {
		return fmt.Errorf("there are %d StatefulSets, want %s alone", len(sets.Items), e.name(m, m.Status.ActiveGeneration))
	}
	var public corev1.Service
	if err := e.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: "mz" + m.Status.ResourceID + "-environmentd"}, &public); err != nil {
		return err
	}
	if got := public.Spec.Selector[v1alpha2.LabelGeneration]; got != fmt.Sprint(m.Status.ActiveGeneration) {
		return fmt.Errorf("users are led to generation %s", got)
	}
	for _, app := range []string{"balancerd", "console"} {
		var d appsv1.Deployment
		if err := e.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: "mz" + m.Status.ResourceID + "-" + app}, &d); err != nil {
			return err
		}
		if got, want := d.Spec.Template.Spec.Containers[0].Image, "materialize/"+app+":"+tag; got != want {
			return fmt.Errorf("%s has image %s, want %s", app, got, want)
		}
		// Its Service is applied after it. That of the console is the last object of all.
		if err := e.Get(ctx, client.ObjectKeyFromObject(&d), &corev1.Service{}); err != nil {
			return err
		}
	}
	return nil
}

// name of what is made for a generation.
func (e *environment) name(m *v1alpha2.Materialize, generation int64) string {
	return fmt.Sprintf("mz%s-environmentd-%d", m.Status.ResourceID, generation)
}

// set is the StatefulSet of a generation, nil if there is none.
func (e *environment) set(t testing.TB, generation int64) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	err := e.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: e.name(e.now(t), generation)}, set)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return set
}

// daemon is the environmentd of a generation.
func (e *environment) daemon(generation int64) *environmentd.Environmentd {
	return e.fleet.Of(fmt.Sprintf("%s/%s/%d", e.namespace, e.resource, generation))
}
