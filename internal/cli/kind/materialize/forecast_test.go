package materialize

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/rollout"
)

func TestPrintForecast(t *testing.T) {
	v1, v2, v3 := spec("v1"), spec("v2"), spec("v3")
	moreLabels := func(m *v1alpha2.Materialize) {
		m.Spec.PodLabels = map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}
	}
	cases := map[string]struct {
		scene    scene
		proposed *v1alpha2.Materialize
		want     string
	}{
		"what serves is asked for": {
			scene{m: v1, serves: v1}, nil,
			"no rollout: generation 1 serves the current spec\n\n",
		},
		"the same again": {
			scene{m: v1, serves: v1}, spec("v1"),
			"no rollout: nothing changed\n\n",
		},
		"the same, written in another way": {
			scene{m: v1, serves: v1}, spec("v1", func(m *v1alpha2.Materialize) { m.Spec.RolloutRequestTimeout = "60m" }),
			"no rollout: nothing changed\n\n",
		},
		"replicas": {
			scene{m: v1, serves: v1}, spec("v1", balancerds(3)),
			`no rollout: only balancerdReplicas changed

APPLIED AT ONCE     FROM   TO
balancerdReplicas   2      3

`,
		},
		"replicas that were changed after the generation was made": {
			scene{m: spec("v1", balancerds(3)), serves: v1}, spec("v1", balancerds(3)),
			"no rollout: nothing changed\n\n",
		},
		"another image": {
			scene{m: v1, serves: v1}, v2,
			`rollout: generation 2 follows generation 1, because environmentdImageRef changed

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v2

`,
		},
		"another image, which is there already": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonApplying}, nil,
			`rollout: generation 2 follows generation 1, because environmentdImageRef changed

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v2

`,
		},
		"an image that cannot be rolled out": {
			scene{m: v1, serves: v1}, spec("v1", digestAlone),
			`no rollout: spec.environmentdImageRef materialize/environmentd@sha256:0123 has a digest and no tag,
and the image of balancerd is the one with the same tag: write it as NAME:TAG@DIGEST

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd@sha256:0123

`,
		},
		"an image that cannot be rolled out, while another one is promoted": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonPromoting}, spec("v1", digestAlone),
			`no rollout after the one of generation 2: spec.environmentdImageRef
materialize/environmentd@sha256:0123 has a digest and no tag, and the image of balancerd is the one
with the same tag: write it as NAME:TAG@DIGEST

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v2   materialize/environmentd@sha256:0123

`,
		},
		"an image that cannot be rolled out, and serves": {
			scene{m: spec("v1", digestAlone), serves: spec("v1", digestAlone)}, nil,
			"no rollout: generation 1 serves the current spec\n\n",
		},
		"both kinds of changes, and many": {
			scene{m: v1, serves: v1}, spec("v1", moreLabels, balancerds(3)),
			`rollout: generation 2 follows generation 1, because podLabels[a], podLabels[b], podLabels[c] and 1
more field changed

ROLLS OUT      FROM   TO
podLabels[a]   -      1
podLabels[b]   -      2
podLabels[c]   -      3
podLabels[d]   -      4

APPLIED AT ONCE     FROM   TO
balancerdReplicas   2      3

`,
		},
		"the annotation": {
			scene{m: v1, serves: v1}, spec("v1", annotated(v1alpha2.AnnotationForceRollout, "monday")),
			`rollout: generation 2 follows generation 1, because
metadata.annotations[materialize.cloud/force-rollout] changed

ROLLS OUT                                               FROM   TO
metadata.annotations[materialize.cloud/force-rollout]   -      monday

`,
		},
		"the rollout that is underway": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonApplying}, spec("v2"),
			`rollout: the rollout of generation 2 continues unchanged

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v2

`,
		},
		"another one than the one that is underway": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonApplying}, v3,
			`rollout: a new generation 2 replaces the existing one, because environmentdImageRef changed

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v3

`,
		},
		"one that took too long": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonRolloutTimeout, after: 2 * time.Hour}, nil,
			`no rollout: the rollout of generation 2 timed out and was cancelled

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v2

`,
		},
		"another one than the one that took too long": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonRolloutTimeout, after: 2 * time.Hour}, v3,
			`rollout: generation 2 follows generation 1, because environmentdImageRef changed

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v3

`,
		},
		"back to what serves": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonApplying}, v1,
			"no rollout: generation 1 serves this spec, and generation 2 is removed\n\n",
		},
		"back to what serves, after it took too long": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonRolloutTimeout, after: 2 * time.Hour}, v1,
			"no rollout: generation 1 serves this spec\n\n",
		},
		"while promoting": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonPromoting}, nil,
			"no further rollout: generation 2 is being promoted, which cannot be aborted\n\n",
		},
		"another one while promoting": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonPromoting}, v3,
			`rollout: generation 3 follows when the promotion of generation 2 is complete, because
environmentdImageRef changed

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v2   materialize/environmentd:v3

`,
		},
		"back to what served before, while promoting": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonPromoting}, v1,
			`rollout: generation 3 follows when the promotion of generation 2 is complete, because
environmentdImageRef changed

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v2   materialize/environmentd:v1

`,
		},
		"replicas while promoting": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonPromoting}, spec("v2", balancerds(1)),
			`no further rollout: generation 2 is being promoted, which cannot be aborted, and only
balancerdReplicas changed

APPLIED AT ONCE     FROM   TO
balancerdReplicas   2      1

`,
		},
		"the first":                    {scene{m: v1}, nil, "rollout: generation 1 is the first\n\n"},
		"the first, which is underway": {scene{m: v1, requested: v1, phase: v1alpha2.ReasonApplying}, nil, "rollout: generation 1 is the first\n\n"},
		"another one before the first": {
			scene{m: v1, requested: v1, phase: v1alpha2.ReasonApplying}, v2,
			`rollout: generation 1, which is the first, is created again, because environmentdImageRef changed

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v2

`,
		},
		"the same before the first":      {scene{m: v1, requested: v1, phase: v1alpha2.ReasonApplying}, spec("v1"), "rollout: generation 1 is the first\n\n"},
		"no record, but nothing changed": {scene{m: v1, serves: v1, unrecorded: true}, nil, "no rollout: generation 1 serves the current spec\n\n"},
		"no record, but what is there must be it": {
			scene{m: v1, serves: v1, unrecorded: true}, v2,
			`rollout: generation 2 follows generation 1, because environmentdImageRef changed

ROLLS OUT              FROM                          TO
environmentdImageRef   materialize/environmentd:v1   materialize/environmentd:v2

`,
		},
		"no record": {
			scene{m: v2, serves: v1, requested: v2, unrecorded: true, phase: v1alpha2.ReasonApplying}, nil,
			`rollout: generation 2 follows generation 1, because the spec differs from that of generation 1,
which has no record

`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := c.scene.environment(t)
			proposed := c.proposed
			if proposed != nil {
				proposed = proposed.DeepCopy()
				proposed.Status = e.Materialize.Status
			}
			var out bytes.Buffer
			printForecast(&out, render.Text, rollout.NewForecast(e.Observed, proposed, now))
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
