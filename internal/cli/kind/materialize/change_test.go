package materialize

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
)

// offered is what a person is shown, and then asked.
func offered(change kind.Change, err error) string {
	switch {
	case err != nil:
		return "error: " + err.Error() + "\n"
	case change.Noop != "":
		return change.Noop + "\n"
	}
	var out bytes.Buffer
	change.Show(&out)
	return out.String() + change.Question + "\n"
}

func TestPlanPromotion(t *testing.T) {
	v1, v2 := spec("v1"), spec("v2")
	cases := map[string]struct {
		scene scene
		want  string
	}{
		"waits for it": {
			scene{
				m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonReadyToPromote, leader: v1alpha2.LeaderReadyToPromote,
				pods: []corev1.Pod{makePod("a", true, "")},
			},
			`Materialize shop/mz: generation 2 becomes active in place of generation 1.
1 of 1 pod ready; environmentd has caught up, and waits for the promotion.

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v2

A promotion cannot be undone.
Promote generation 2?
`,
		},
		"has not caught up": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonApplying, leader: v1alpha2.LeaderInitializing, pods: []corev1.Pod{makePod("a", true, "")}},
			`Materialize shop/mz: generation 2 becomes active in place of generation 1.
1 of 1 pod ready; environmentd has not caught up yet, and is promoted in any case.

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v2

A promotion cannot be undone.
Promote generation 2?
`,
		},
		"the first, which is paused": {
			scene{
				m: spec("v1", annotated(fairlead.AnnotationPaused, "true")), requested: v1, phase: v1alpha2.ReasonApplying,
			},
			`Materialize shop/mz: generation 1 becomes active.
No pods yet; environmentd has not reported whether it has caught up, and is promoted in any case.

On hold: paused by annotation fairlead.dev/paused; resume with ` + "`fairlead resume mzs mz -n shop`" + `.

A promotion cannot be undone.
Promote generation 1?
`,
		},
		"promoting":         {scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonPromoting}, "generation 2 is being promoted already\n"},
		"changed meanwhile": {scene{m: spec("v3"), serves: v1, requested: v2, phase: v1alpha2.ReasonPromoting}, "generation 2 is being promoted already\n"},
		"up to date":        {scene{m: v1, serves: v1}, "there is nothing to promote: generation 1 serves the current spec\n"},
		"asked for already": {
			scene{m: spec("v2", promoted(t, v2)), serves: v1, requested: v2, phase: v1alpha2.ReasonApplying},
			"generation 2 is promoted as soon as its pods are ready: spec.forcePromote is set already\n",
		},
		"asked for before the rollout was": {
			scene{
				m: spec("v2", promoted(t, v2)), serves: v1, requested: v2, ignored: v2, phase: v1alpha2.ReasonReadyToPromote, leader: v1alpha2.LeaderReadyToPromote,
				pods: []corev1.Pod{makePod("a", true, "")},
			},
			`Materialize shop/mz: generation 2 becomes active in place of generation 1.
1 of 1 pod ready; environmentd has caught up, and waits for the promotion.

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v2

A promotion cannot be undone.
Promote generation 2?
`,
		},
		"the operator has not seen it": {
			scene{m: v2, serves: v1},
			"error: the operator has not requested the rollout of this spec yet: check that the operator runs, and that the Materialize is not paused\n",
		},
		"the operator has seen another one": {
			scene{m: spec("v3"), serves: v1, requested: v2, phase: v1alpha2.ReasonReadyToPromote, leader: v1alpha2.LeaderReadyToPromote},
			"error: the operator has not requested the rollout of this spec yet: check that the operator runs, and that the Materialize is not paused\n",
		},
		"refused": {
			scene{m: spec("v2", digestAlone), serves: v1, phase: v1alpha2.ReasonFailedDeploy},
			"error: there is no rollout to promote: spec.environmentdImageRef materialize/environmentd@sha256:0123 has a digest and no tag, " +
				"and the image of balancerd is the one with the same tag: write it as NAME:TAG@DIGEST\n",
		},
		"cancelled": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonRolloutTimeout, after: 2 * time.Hour},
			"error: the rollout of generation 2 timed out and was cancelled: change the spec, or set spec.forceRollout to a new UUID\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, offered(planPromotion(c.scene.environment(t), connect.Resource{}, now))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func promoted(t *testing.T, m *v1alpha2.Materialize) func(*v1alpha2.Materialize) {
	return func(of *v1alpha2.Materialize) { of.Spec.ForcePromote = hashOf(t, m) }
}

func TestPlanAbort(t *testing.T) {
	v1, v2 := spec("v1"), spec("v2")
	cases := map[string]struct {
		scene scene
		want  string
	}{
		"causes downtime, and was promoted": {
			scene{
				m:      spec("v2", strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime), func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = strings.Repeat("0123456789abcdef", 4) }),
				serves: v1, requested: spec("v2", strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime)), ended: true, phase: v1alpha2.ReasonApplying,
			},
			`Materialize shop/mz goes back to the spec of generation 1, which is started again: nothing serves
until then. Generation 2 is removed.

FIELD                  FROM                                BACK TO
environmentdImageRef   materialize/environmentd:v2         materialize/environmentd:v1
rolloutStrategy        ImmediatelyPromoteCausingDowntime   WaitUntilReady
forcePromote           0123456789ab...                     -

Applying the newer manifest again starts the rollout again.
Restore that spec?
`,
		},
		"another image, and more balancerds": {
			scene{m: spec("v2", balancerds(5)), serves: v1, requested: v2, phase: v1alpha2.ReasonApplying},
			`Materialize shop/mz goes back to the spec of generation 1, which serves. Generation 2 is removed.

FIELD                  FROM                          BACK TO
environmentdImageRef   materialize/environmentd:v2   materialize/environmentd:v1

Applying the newer manifest again starts the rollout again.
Restore that spec?
`,
		},
		"promoted too early": {
			scene{m: spec("v2", func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = "0123" }), serves: v1, requested: v2, phase: v1alpha2.ReasonApplying},
			`Materialize shop/mz goes back to the spec of generation 1, which serves. Generation 2 is removed.

FIELD                  FROM                          BACK TO
environmentdImageRef   materialize/environmentd:v2   materialize/environmentd:v1
forcePromote           0123                          -

Applying the newer manifest again starts the rollout again.
Restore that spec?
`,
		},
		"the operator has not seen it": {
			scene{m: spec("v1", annotated(v1alpha2.AnnotationForceRollout, "monday")), serves: v1},
			`Materialize shop/mz goes back to the spec of generation 1, which serves.

FIELD                                                   FROM     BACK TO
metadata.annotations[materialize.cloud/force-rollout]   monday   -

Applying the newer manifest again starts the rollout again.
Restore that spec?
`,
		},
		"up to date": {scene{m: v1, serves: v1}, "no rollout is in progress: generation 1 serves the current spec\n"},
		"promoting": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonPromoting},
			"error: generation 2 is being promoted, which cannot be aborted: change the spec to roll out generation 3 afterwards\n",
		},
		"the first": {
			scene{m: v1, requested: v1, phase: v1alpha2.ReasonApplying},
			"error: no rollout has been completed, so there is no spec to restore: change the spec, or delete the resource\n",
		},
		"no record": {
			scene{m: v2, serves: v1, requested: v2, unrecorded: true, phase: v1alpha2.ReasonApplying},
			"error: generation 1 has no record of its spec: change the spec back yourself\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, offered(planAbort(c.scene.environment(t), connect.Resource{}, now))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is written back is what served, and nothing that does not roll out is touched.
func TestRestoreSpec(t *testing.T) {
	labels := func(labels map[string]string) func(*v1alpha2.Materialize) {
		return func(m *v1alpha2.Materialize) { m.Spec.PodLabels = labels }
	}
	timeout := func(d v1alpha2.Duration) func(*v1alpha2.Materialize) {
		return func(m *v1alpha2.Materialize) { m.Spec.RolloutRequestTimeout = d }
	}
	force := func(m *v1alpha2.Materialize) { m.Spec.ForcePromote = "h" }
	cases := map[string]struct{ now, served, want *v1alpha2.Materialize }{
		"an image":                        {spec("v2", balancerds(5), force), spec("v1"), spec("v1", balancerds(5))},
		"entries that came, went, stayed": {spec("v1", labels(map[string]string{"a": "1", "b": "2"})), spec("v1", labels(map[string]string{"a": "1", "c": "3"})), spec("v1", labels(map[string]string{"a": "1", "c": "3"}))},
		"a field that came":               {spec("v1", labels(map[string]string{"a": "1"})), spec("v1"), spec("v1")},
		"a field that went":               {spec("v1"), spec("v1", labels(map[string]string{"a": "1"})), spec("v1", labels(map[string]string{"a": "1"}))},
		"another way of writing stays":    {spec("v2", timeout("60m")), spec("v1", timeout("1h")), spec("v1", timeout("60m"))},
		"an annotation that came": {
			spec("v1", annotated("other", "x"), annotated(v1alpha2.AnnotationForceRollout, "monday")), spec("v1"), spec("v1", annotated("other", "x")),
		},
		"an annotation that is another one": {
			spec("v1", annotated(v1alpha2.AnnotationForceRollout, "tuesday")), spec("v1", annotated(v1alpha2.AnnotationForceRollout, "monday")),
			spec("v1", annotated(v1alpha2.AnnotationForceRollout, "monday")),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := scene{m: c.now, serves: c.served}.environment(t)
			l := &fakeCluster{m: e.Materialize}
			change, err := planAbort(e, l.resource(), now)
			if err != nil {
				t.Fatal(err)
			}
			if err := change.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := l.m
			got.Status = v1alpha2.MaterializeStatus{}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if hashOf(t, got) != hashOf(t, c.served) {
				t.Error("it would roll out")
			}
		})
	}
}

func TestCheckUnchanged(t *testing.T) {
	shown := scene{m: spec("v2"), serves: spec("v1"), requested: spec("v2"), phase: v1alpha2.ReasonApplying}
	uid := func(uid types.UID) func(*v1alpha2.Materialize) { return func(m *v1alpha2.Materialize) { m.UID = uid } }
	cases := map[string]struct {
		now  scene
		want string
	}{
		"the same":     {shown, ""},
		"another size": {scene{m: spec("v2", balancerds(4)), serves: spec("v1"), requested: spec("v2"), phase: v1alpha2.ReasonApplying}, ""},
		"another spec": {scene{m: spec("v3"), serves: spec("v1"), requested: spec("v2"), phase: v1alpha2.ReasonApplying}, "its spec was changed meanwhile"},
		"another one":  {scene{m: spec("v2", uid("u2"))}, "it was deleted and created again meanwhile"},
		"promoting":    {scene{m: spec("v2"), serves: spec("v1"), requested: spec("v2"), phase: v1alpha2.ReasonPromoting}, "it is being promoted meanwhile"},
		"completed":    {scene{m: spec("v2")}, "its rollout was completed meanwhile"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := checkUnchanged(shown.environment(t).Materialize, c.now.environment(t).Materialize); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// fakeCluster is a cluster of one Materialize, and of an operator that does no more than to forget what was ignored, if it runs.
type fakeCluster struct {
	client.Client
	m        *v1alpha2.Materialize
	operator bool
	// forcePromotes are the values of forcePromote, in their order.
	forcePromotes []string
}

func (l *fakeCluster) resource() connect.Resource {
	return connect.Resource{Cluster: &connect.Cluster{Client: l}, Key: client.ObjectKeyFromObject(l.m)}
}

func (l *fakeCluster) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.m.DeepCopyInto(into.(*v1alpha2.Materialize))
	return nil
}

func (l *fakeCluster) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	l.m = object.(*v1alpha2.Materialize).DeepCopy()
	l.forcePromotes = append(l.forcePromotes, l.m.Spec.ForcePromote)
	if l.operator && l.m.Spec.ForcePromote != l.m.Status.IgnoredForcePromote {
		l.m.Status.IgnoredForcePromote = ""
	}
	return nil
}

// What is ignored is removed first, and only set again when the operator knows that.
func TestPromoteAgain(t *testing.T) {
	v1, v2 := spec("v1"), spec("v2")
	hash := hashOf(t, v2)
	stale := scene{m: spec("v2", promoted(t, v2)), serves: v1, requested: v2, ignored: v2, phase: v1alpha2.ReasonReadyToPromote}
	plain := scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonReadyToPromote}
	cases := map[string]struct {
		scene    scene
		operator bool
		said     []string
		err      string
	}{
		"nothing was said":              {plain, true, []string{hash}, ""},
		"it was said before":            {stale, true, []string{"", hash}, ""},
		"it was said before, to nobody": {stale, false, []string{""}, "is it running?"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := c.scene.environment(t)
				l := &fakeCluster{m: e.Materialize, operator: c.operator}
				change, err := planPromotion(e, l.resource(), now)
				if err != nil {
					t.Fatal(err)
				}
				err = change.Apply(t.Context())
				if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				if diff := cmp.Diff(c.said, l.forcePromotes); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
