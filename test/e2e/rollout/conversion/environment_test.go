package conversion_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/hash"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// environment is a Materialize in a namespace of its own.
type environment struct {
	*world
	namespace string
	// before is all that ran when Fairlead came.
	before map[string]string
}

// environment makes one, of no more than a namespace so far.
func (w *world) environment(t testing.TB) *environment {
	t.Helper()
	return &environment{world: w, namespace: w.Namespace(t)}
}

// deployed is one whose first generation serves, as Fairlead has made it.
func (w *world) deployed(t testing.TB, apply way, m manifest) *environment {
	t.Helper()
	e := w.environment(t)
	if err := apply(t.Context(), e, m); err != nil {
		t.Fatal(err)
	}
	e.serves(t, 1, "v1")
	e.tells(t, firstDeploy...)
	return e
}

// firstDeploy is the history of every environment that Fairlead has made.
var firstDeploy = append(starting(1), "users are led to generation 1")

func (e *environment) get(ctx context.Context) (*v1alpha2.Materialize, error) {
	m := &v1alpha2.Materialize{}
	return m, e.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: "mz"}, m)
}

func (e *environment) now(t testing.TB) *v1alpha2.Materialize {
	t.Helper()
	m, err := e.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// patch changes the resource through one version of the API.
func (e *environment) patch(t testing.TB, version, patch string) {
	t.Helper()
	object := manifest{version: version}.object(e.namespace)
	if err := e.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// condition is what Fairlead says, if it has said anything yet.
func condition(m *v1alpha2.Materialize) metav1.Condition {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha2.ConditionUpToDate)
	if c == nil || c.Message == reportedBefore {
		return metav1.Condition{}
	}
	return *c
}

// says waits until the operator gives a reason, and speaks of the spec as it is.
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
	if want := e.hash(t, m); m.Status.LastCompletedRolloutHash != want || m.Status.RequestedRolloutHash != want {
		t.Errorf("the hash is %s, and the status has %+v", want, m.Status)
	}
	return m
}

func (e *environment) hash(t testing.TB, m *v1alpha2.Materialize) string {
	t.Helper()
	return hash.Of(m)
}

// complete says what is missing of an environment, or too much.
func (e *environment) complete(ctx context.Context, m *v1alpha2.Materialize, tag string) error {
	if want := imageOf(tag); m.Status.LastCompletedRolloutEnvironmentdImageRef != want {
		return fmt.Errorf("status has image %s, want %s", m.Status.LastCompletedRolloutEnvironmentdImageRef, want)
	}
	var sets appsv1.StatefulSetList
	if err := e.List(ctx, &sets, client.InNamespace(e.namespace)); err != nil {
		return err
	}
	if want := nameOf(m.Status.ResourceID, m.Status.ActiveGeneration); len(sets.Items) != 1 || sets.Items[0].Name != want {
		return fmt.Errorf("there are %d StatefulSets, want %s alone", len(sets.Items), want)
	}
	if got := sets.Items[0].Spec.Template.Spec.Containers[0].Image; got != imageOf(tag) {
		return fmt.Errorf("environmentd has image %s, want %s", got, imageOf(tag))
	}
	return nil
}

func nameOf(resourceID string, generation int64) string {
	return fmt.Sprintf("mz%s-environmentd-%d", resourceID, generation)
}

func imageOf(tag string) string { return "materialize/environmentd:" + tag }

// running is all that is restarted in a rollout, with what changes if it is.
func (e *environment) running(ctx context.Context) (map[string]string, error) {
	var sets appsv1.StatefulSetList
	if err := e.List(ctx, &sets, client.InNamespace(e.namespace)); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := e.List(ctx, &pods, client.InNamespace(e.namespace)); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, set := range sets.Items {
		all["StatefulSet "+set.Name] = fmt.Sprintf("%s, generation %d", set.UID, set.Generation)
	}
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.Kind == "StatefulSet" {
			all["Pod "+pod.Name] = string(pod.UID)
		}
	}
	return all, nil
}

// untouched fails the test if anything was restarted since.
func (e *environment) untouched(t testing.TB, before map[string]string) {
	t.Helper()
	after, err := e.running(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what runs was touched: %s", diff)
	}
}

// daemon is the environmentd of a generation.
func (e *environment) daemon(generation int64) *environmentd.Environmentd {
	return e.fleet.Of(fmt.Sprintf("%s/mz/%d", e.namespace, generation))
}
