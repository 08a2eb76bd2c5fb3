package conversion_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestKnownTestingRequired has the list of that name, in its order.
func TestKnownTestingRequired(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	for _, from := range []string{older, newer} {
		for _, by := range []string{older, newer} {
			t.Run(fmt.Sprintf("Upgrades from existing %s environments by applying %s CR", from, by), func(t *testing.T) {
				t.Parallel()
				for name, apply := range ways {
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						m := written(by)
						if from == older {
							m = m.withRole()
						}
						upgrade(t, existing(t, w, from, by, name), apply, m)
					})
				}
			})
		}
	}
	t.Run("Upgrade from existing v1alpha1 environment that is mid-rollout not in promoting status", func(t *testing.T) {
		t.Parallel()
		t.Run(firstApplying, func(t *testing.T) { t.Parallel(); firstIsBegunAnew(t, w.inheritedAs(t, firstApplying)) })
		t.Run(parked, func(t *testing.T) { t.Parallel(); parkedIsBegunAnew(t, w.inheritedAs(t, parked)) })
		t.Run(withdrawn, func(t *testing.T) { t.Parallel(); changedWhileBegunAnew(t, w.inheritedAs(t, withdrawn)) })
	})
	t.Run("Upgrade from existing v1alpha1 environment that is mid-rollout in promoting status", func(t *testing.T) {
		t.Parallel()
		t.Run(firstPromoting, func(t *testing.T) { t.Parallel(); firstIsCompleted(t, w.inheritedAs(t, firstPromoting)) })
		t.Run(changedPromoting, func(t *testing.T) { t.Parallel(); changedWhilePromoting(t, w.inheritedAs(t, changedPromoting)) })
	})
	t.Run("Upgrades with a previous rollout already in progress", func(t *testing.T) {
		t.Parallel()
		for _, version := range []string{older, newer} {
			t.Run("not promoting, by "+version, func(t *testing.T) { t.Parallel(); overtaken(t, w, version) })
			t.Run("promoting, by "+version, func(t *testing.T) { t.Parallel(); queued(t, w, version) })
		}
	})
	t.Run("Upgrades triggered by annotation", func(t *testing.T) {
		t.Parallel()
		for _, version := range []string{older, newer} {
			t.Run("of an environment from v1alpha1, by "+version, func(t *testing.T) {
				t.Parallel()
				annotate(t, w.inheritedAs(t, annotatedBy+version), version)
			})
			t.Run("of an environment from v1alpha2, by "+version, func(t *testing.T) {
				t.Parallel()
				annotate(t, w.deployed(t, clientSide, written(newer)), version)
			})
		}
	})
	t.Run("Deploy of latest Materialize image versions using v1alpha2 CR", func(t *testing.T) { t.Parallel(); deploy(t, w, "v26.3.0", "v26.3.0-rc.1") })
	t.Run("Deploy of older Materialize image versions using v1alpha2 CR", func(t *testing.T) { t.Parallel(); deploy(t, w, "v0.130.4", "v25.2.0") })
}

// existing is an environment that serves, of the image v1.
func existing(t *testing.T, w *world, version, by, name string) *environment {
	t.Helper()
	if version == newer {
		return w.deployed(t, ways[name], written(newer))
	}
	return w.inheritedAs(t, upgradedBy+by+", "+name)
}

const upgradedBy = "upgraded by applying "

func upgradeLegacies() map[string]legacy {
	all := map[string]legacy{}
	for _, by := range []string{older, newer} {
		for name, apply := range ways {
			all[upgradedBy+by+", "+name] = atRest(apply)
		}
	}
	return all
}

// upgrade applies the same manifest again, which does nothing, and one with another image, which rolls out.
func upgrade(t *testing.T, e *environment, apply way, same manifest) {
	m := e.serves(t, 1, "v1")
	story := e.history()
	if err := apply(t.Context(), e, same); err != nil {
		t.Fatal(err)
	}
	if again := e.serves(t, 1, "v1"); !again.Status.RolloutRequestedAt.Equal(m.Status.RolloutRequestedAt) {
		t.Error("a rollout was asked for")
	}
	e.tells(t, story...)
	if err := apply(t.Context(), e, same.image("v2")); err != nil {
		t.Fatal(err)
	}
	after := e.serves(t, 2, "v2")
	e.tells(t, slices.Concat(story, starting(2), takingOver(2))...)
	if after.Status.ResourceID != m.Status.ResourceID || after.Status.EnvironmentID != m.Status.EnvironmentID || after.Spec.EnvironmentID != m.Spec.EnvironmentID {
		t.Errorf("it is another environment: %+v", after)
	}
}

// overtaken: what has been begun is replaced by what is asked for now.
func overtaken(t *testing.T, w *world, version string) {
	e := w.deployed(t, clientSide, written(version))
	e.daemon(2).Behave(environmentd.Manner{CatchesUp: true})
	if err := clientSide(t.Context(), e, written(version).image("v2")); err != nil {
		t.Fatal(err)
	}
	begun := slices.Concat(firstDeploy, starting(2))
	e.tells(t, begun...)
	wait.Until(t, e.catchesUp(2))
	if err := clientSide(t.Context(), e, written(version).image("v3")); err != nil {
		t.Fatal(err)
	}
	anew := slices.Concat(begun, []string{"generation 2 is gone"}, starting(2))
	e.tells(t, anew...)
	e.daemon(2).CatchUp()
	e.serves(t, 2, "v3")
	e.tells(t, append(anew, takingOver(2)...)...)
}

// queued: what takes over already is completed, and then comes what is asked for now.
func queued(t *testing.T, w *world, version string) {
	e := w.deployed(t, clientSide, written(version))
	e.daemon(2).Behave(environmentd.Manner{Lingers: true})
	if err := clientSide(t.Context(), e, written(version).image("v2")); err != nil {
		t.Fatal(err)
	}
	requested := e.says(t, v1alpha2.ReasonPromoting).Status.RequestedRolloutHash
	if err := clientSide(t.Context(), e, written(version).image("v3")); err != nil {
		t.Fatal(err)
	}
	if m := e.says(t, v1alpha2.ReasonPromoting); m.Status.RequestedRolloutHash != requested {
		t.Errorf("the request has moved from %s while it was promoting: %+v", requested, m.Status)
	}
	e.daemon(2).Behave(environmentd.Manner{})
	e.serves(t, 3, "v3")
	e.tells(t, slices.Concat(firstDeploy, starting(2), takingOver(2), starting(3), takingOver(3))...)
}

const annotatedBy = "annotated as "

func annotationLegacies() map[string]legacy {
	return map[string]legacy{annotatedBy + older: atRest(clientSide), annotatedBy + newer: atRest(serverSide("terraform"))}
}

func annotate(t *testing.T, e *environment, version string) {
	e.serves(t, 1, "v1")
	story := e.history()
	e.patch(t, version, fmt.Sprintf(`{"metadata":{"annotations":{%q:"again"}}}`, v1alpha2.AnnotationForceRollout))
	e.serves(t, 2, "v1")
	e.tells(t, slices.Concat(story, starting(2), takingOver(2))...)
}

// deploy looks at all that is of the version.
func deploy(t *testing.T, w *world, tags ...string) {
	for _, tag := range tags {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			e := w.environment(t)
			if err := clientSide(t.Context(), e, written(newer).image(tag)); err != nil {
				t.Fatal(err)
			}
			m := e.serves(t, 1, tag)
			e.tells(t, firstDeploy...)
			wait.Until(t, func(ctx context.Context) error {
				for _, app := range []string{"balancerd", "console"} {
					var d appsv1.Deployment
					if err := e.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: "mz" + m.Status.ResourceID + "-" + app}, &d); err != nil {
						return err
					}
					if got, want := d.Spec.Template.Spec.Containers[0].Image, "materialize/"+app+":"+tag; got != want {
						return fmt.Errorf("%s has image %s, want %s", app, got, want)
					}
				}
				return nil
			})
		})
	}
}
