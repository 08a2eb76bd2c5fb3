package rollout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/environmentd"
)

func TestCondition(t *testing.T) {
	v1, v2 := func() maker { return makeMaterialize() }, func() maker { return makeMaterialize().image("v2") }
	second := func(b maker) maker { return b.serving(t, 1, v1()).requested(t, b, 0).reported(v1alpha2.ReasonApplying) }
	manual := func() maker { return v2().strategy(v1alpha2.RolloutManuallyPromote) }
	refused := applyErrors{tolerated: []error{errors.New("ensure Deployment shop/x: somebody does not want it")}}
	stopped := applyErrors{blocking: errors.New("apply StatefulSet shop/x: somebody does not want it")}
	asked := applyErrors{blocking: asEnvironmentdError(environmentd.Refusal{Message: "not today"})}
	cases := map[string]struct {
		scene  scene
		failed applyErrors
		want   string
	}{
		"serving": {
			scene: seeing(t, v1().serving(t, 1, v1())).generation(1, v1()).complete(),
			want:  "True Applied: generation 1 serves the current spec",
		},
		"serving, and something is refused": {
			scene:  seeing(t, v1().serving(t, 1, v1())).generation(1, v1()).complete(),
			failed: refused, want: "False FailedDeploy: ensure Deployment shop/x: somebody does not want it",
		},
		"serving, and paused": {
			scene: seeing(t, v1().serving(t, 1, v1()).annotate(fairlead.AnnotationPaused, "true")).generation(1, v1()).complete(),
			want:  "True Applied: generation 1 serves the current spec; paused by annotation fairlead.dev/paused; resume with `fairlead resume mzs mz -n shop`",
		},
		"serving, paused, and its StatefulSet is gone": {
			scene: seeing(t, v1().serving(t, 1, v1()).annotate(fairlead.AnnotationPaused, "true")).generation(1, v1()).without(1, "StatefulSet").complete(),
			want: "Unknown Applying: generation 1 is active; restoring it is on hold: StatefulSet mza1b2c3d4e5-environmentd-1: does not exist; " +
				"paused by annotation fairlead.dev/paused; resume with `fairlead resume mzs mz -n shop`",
		},
		"changed back, and paused": {
			scene: seeing(t, v1().serving(t, 1, v1()).requested(t, v2(), 0).annotate(fairlead.AnnotationPaused, "true")).generation(1, v1()).generation(2, v2()).complete(),
			want: "Unknown Applying: generation 1 stays active; removing generation 2 is on hold: " +
				"paused by annotation fairlead.dev/paused; resume with `fairlead resume mzs mz -n shop`",
		},
		"changed, and paused": {
			scene: seeing(t, v2().serving(t, 1, v1()).annotate(fairlead.AnnotationPaused, "true")).generation(1, v1()).complete(),
			want:  "Unknown Applying: generation 2 is on hold: paused by annotation fairlead.dev/paused; resume with `fairlead resume mzs mz -n shop`",
		},
		"pods are not ready": {
			scene: seeing(t, second(v2())).generation(1, v1()).generation(2, v2()).unready(2).complete(),
			want:  "Unknown Applying: creating generation 2: StatefulSet shop/mza1b2c3d4e5-environmentd-2: 0 of 1 pods ready",
		},
		"ready": {
			scene: seeing(t, second(manual())).generation(1, v1()).generation(2, manual()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want: "Unknown ReadyToPromote: generation 2 is ready; to promote it, set spec.forcePromote to " + hashOf(t, manual()) +
				": `fairlead promote mzs mz -n shop`",
		},
		"ready, and approved of before it was asked for": {
			scene: seeing(t, second(manual().forcePromote(hashOf(t, manual()))).ignoring(hashOf(t, manual()))).generation(1, v1()).generation(2, manual()).complete().hears(v1alpha2.LeaderReadyToPromote),
			want: "Unknown ReadyToPromote: generation 2 is ready; spec.forcePromote " + hashOf(t, manual()) +
				" is older than the rollout and ignored; to promote it, remove spec.forcePromote and set it again: `fairlead promote mzs mz -n shop`",
		},
		"ready, and something is refused": {
			scene:  seeing(t, second(manual())).generation(1, v1()).generation(2, manual()).complete().hears(v1alpha2.LeaderReadyToPromote),
			failed: refused, want: "Unknown ReadyToPromote: generation 2 is ready; to promote it, set spec.forcePromote to " + hashOf(t, manual()) +
				": `fairlead promote mzs mz -n shop`; also: ensure Deployment shop/x: somebody does not want it",
		},
		"pods are not ready, and something is refused": {
			scene:  seeing(t, second(v2())).generation(1, v1()).generation(2, v2()).unready(2).complete(),
			failed: refused, want: "Unknown Applying: creating generation 2: StatefulSet shop/mza1b2c3d4e5-environmentd-2: 0 of 1 pods ready; " +
				"also: ensure Deployment shop/x: somebody does not want it",
		},
		"it cannot be made": {
			scene:  seeing(t, second(v2())).generation(1, v1()).complete(),
			failed: stopped, want: "False FailedDeploy: apply StatefulSet shop/x: somebody does not want it",
		},
		"neither it nor something else can be made": {
			scene:  seeing(t, second(v2())).generation(1, v1()).complete(),
			failed: applyErrors{stopped.blocking, refused.tolerated},
			want:   "False FailedDeploy: apply StatefulSet shop/x: somebody does not want it; also: ensure Deployment shop/x: somebody does not want it",
		},
		"serving, something is refused, and something goes": {
			scene:  seeing(t, v1().serving(t, 5, v1())).generation(5, v1()).generation(2, v2()).going(2).complete(),
			failed: refused, want: "False FailedDeploy: ensure Deployment shop/x: somebody does not want it",
		},
		"promoting": {
			scene: seeing(t, second(v2()).reported(v1alpha2.ReasonPromoting)).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderPromoting),
			want:  "Unknown Promoting: promoting generation 2: StatefulSet shop/mza1b2c3d4e5-environmentd-2: environmentd is taking over leadership",
		},
		"promoting, and something is refused": {
			scene:  seeing(t, second(v2()).reported(v1alpha2.ReasonPromoting)).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderPromoting),
			failed: refused, want: "Unknown Promoting: promoting generation 2: StatefulSet shop/mza1b2c3d4e5-environmentd-2: environmentd is taking over leadership; " +
				"also: ensure Deployment shop/x: somebody does not want it",
		},
		"promoting, and being asked in vain": {
			scene:  seeing(t, second(v2()).reported(v1alpha2.ReasonPromoting)).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderReadyToPromote),
			failed: asked, want: "Unknown Promoting: promoting generation 2: environmentd refuses: not today",
		},
		"being asked in vain": {
			scene:  seeing(t, second(v2().forcePromote(hashOf(t, v2())))).generation(1, v1()).generation(2, v2()).complete().hears(v1alpha2.LeaderInitializing),
			failed: asked, want: "Unknown Applying: creating generation 2: environmentd refuses: not today",
		},
		"too late": {
			scene: seeing(t, second(v2().timeout("1s"))).generation(1, v1()).complete(),
			want: "False RolloutTimeout: generation 2 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"generation 1 stays active; to try again, change the spec or set spec.forceRollout to a new UUID",
		},
		"too late, and environmentd did not answer": {
			scene: seeing(t, second(v2().timeout("1s")).waiting("StatefulSet shop/x: environmentd does not answer: connection refused")).generation(1, v1()).complete(),
			want: "False RolloutTimeout: generation 2 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"generation 1 stays active; to try again, change the spec or set spec.forceRollout to a new UUID; " +
				"last state: StatefulSet shop/x: environmentd does not answer: connection refused",
		},
		"too late, and told before": {
			scene: seeing(t, second(v2().timeout("1s")).reported(v1alpha2.ReasonRolloutTimeout).waiting("StatefulSet shop/x: 0 of 1 pods ready")).generation(1, v1()).complete(),
			want: "False RolloutTimeout: generation 2 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"generation 1 stays active; to try again, change the spec or set spec.forceRollout to a new UUID; last state: StatefulSet shop/x: 0 of 1 pods ready",
		},
		"too late, told before, and paused": {
			scene: seeing(t, second(v2().timeout("1s")).annotate(fairlead.AnnotationPaused, "true").reported(v1alpha2.ReasonRolloutTimeout).waiting("StatefulSet shop/x: 0 of 1 pods ready")).generation(1, v1()).complete(),
			want: "False RolloutTimeout: generation 2 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"generation 1 stays active; to try again, change the spec or set spec.forceRollout to a new UUID; " +
				"paused by annotation fairlead.dev/paused; resume with `fairlead resume mzs mz -n shop`; last state: StatefulSet shop/x: 0 of 1 pods ready",
		},
		"too late, because nobody promoted it": {
			scene: seeing(t, second(v2().timeout("1s")).reported(v1alpha2.ReasonReadyToPromote).waiting("ready, and not promoted")).generation(1, v1()).complete(),
			want: "False RolloutTimeout: generation 2 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"generation 1 stays active; to try again, change the spec or set spec.forceRollout to a new UUID; last state: ready, and not promoted",
		},
		"too late, because it was paused": {
			scene: seeing(t, second(v2().timeout("1s")).waiting("paused")).generation(1, v1()).complete(),
			want: "False RolloutTimeout: generation 2 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"generation 1 stays active; to try again, change the spec or set spec.forceRollout to a new UUID; last state: paused",
		},
		"too late, because it could not be made": {
			scene: seeing(t, second(v2().timeout("1s")).reported(v1alpha2.ReasonFailedDeploy).waiting("apply StatefulSet shop/x: somebody does not want it")).generation(1, v1()).complete(),
			want: "False RolloutTimeout: generation 2 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"generation 1 stays active; to try again, change the spec or set spec.forceRollout to a new UUID; last state: apply StatefulSet shop/x: somebody does not want it",
		},
		"too late, and what served is not ready yet": {
			scene: seeing(t, second(v2().timeout("1s").strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime))).generation(1, v1()).unready(1).complete(),
			want: "False RolloutTimeout: generation 2 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"generation 1 is restarting; to try again, change the spec or set spec.forceRollout to a new UUID",
		},
		"too late, and what served does so again": {
			scene: seeing(t, second(v2().timeout("1s").strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime))).generation(1, v1()).complete(),
			want: "False RolloutTimeout: generation 2 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"generation 1 is active again; to try again, change the spec or set spec.forceRollout to a new UUID",
		},
		"too late, and nothing is left of what served": {
			scene: seeing(t, second(v2().timeout("1s"))).complete(),
			want: "False RolloutTimeout: generation 2 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"no generation is active, because generation 1 is gone; to try again, change the spec or set spec.forceRollout to a new UUID",
		},
		"too late, the first time": {
			scene: seeing(t, v1().timeout("1s").identified().requested(t, v1().timeout("1s"), 0)),
			want: "False RolloutTimeout: generation 1 was not ready to promote within 1s of 2026-01-01T00:00:00Z, and is removed; " +
				"to try again, change the spec or set spec.forceRollout to a new UUID",
		},
		"taken back": {
			scene: seeing(t, v1().serving(t, 1, v1()).requested(t, v2(), 0)).generation(1, v1()).generation(2, v2()).going(2).complete(),
			want:  "Unknown Applying: generation 1 stays active, removing generation 2: StatefulSet shop/mza1b2c3d4e5-environmentd-2 is being deleted",
		},
		"taken back, and what served is not ready": {
			scene: seeing(t, v1().serving(t, 1, v1()).requested(t, v2(), 0)).generation(1, v1()).unready(1).generation(2, v2()).going(2).complete(),
			want:  "Unknown Applying: restoring generation 1 and removing generation 2: StatefulSet shop/mza1b2c3d4e5-environmentd-2 is being deleted",
		},
		"taken back, and not ready": {
			scene: seeing(t, v1().serving(t, 1, v1()).reported(v1alpha2.ReasonApplying)).generation(1, v1()).unready(1).complete(),
			want:  "Unknown Applying: restoring generation 1: StatefulSet shop/mza1b2c3d4e5-environmentd-1: 0 of 1 pods ready",
		},
		"of an unknown hash": {
			scene: seeing(t, func() maker { m := v1().serving(t, 1, v1()); m.Status.RolloutHashVersion = 99; return m }()).generation(1, v1()).complete(),
			want: "Unknown Applying: generation 1 is active; cannot determine whether the spec has changed: hash Materialize shop/mz: " +
				"status.rolloutHashVersion is 99, and this Fairlead knows [1]: run the Fairlead that wrote it, or a newer one",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := at(10)
			d := decide(c.scene.Observed, now)
			status := c.scene.Materialize.Status.DeepCopy()
			setCondition((*v1alpha2.MaterializeStatus)(status), c.scene.Materialize, assess(c.scene.Observed, d, c.failed, now), now)
			got := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionUpToDate)
			if text := fmt.Sprintf("%s %s: %s", got.Status, got.Reason, got.Message); text != c.want {
				t.Errorf("\n got %s\nwant %s", text, c.want)
			}
			before := meta.FindStatusCondition(c.scene.Materialize.Status.Conditions, v1alpha2.ConditionUpToDate)
			if since := got.LastTransitionTime.Time; before != nil && before.Status == got.Status && !since.Equal(epoch) ||
				(before == nil || before.Status != got.Status) && !since.Equal(now) {
				t.Errorf("it is %s since %s", got.Status, since)
			}
		})
	}
}

// TestOutcome: every rollout ends once.
func TestOutcome(t *testing.T) {
	cases := map[string]struct {
		setup func(*cluster)
		want  map[string]float64
	}{
		"completed": {func(c *cluster) { c.roll(100, "v2") }, map[string]float64{"completed": 2, "Applying": 2, "Promoting": 2, "reason Applied": 1}},
		"replaced":  {func(c *cluster) { c.roll(100, "v2"); c.roll(115, "v3") }, map[string]float64{"completed": 2, "replaced": 1, "Applying": 2, "Promoting": 2, "reason Applied": 1}},
		"withdrawn": {func(c *cluster) { c.roll(100, "v2"); c.roll(115, "v1") }, map[string]float64{"completed": 1, "withdrawn": 1, "Applying": 2, "Promoting": 1, "reason Applied": 1}},
		"timed out, and paused": {func(c *cluster) {
			c.m = maker{c.m}.timeout("1m").Materialize
			c.on(90, "", func() { c.catchesUp = 0 })
			c.roll(100, "v2")
			c.on(300, "", func() { c.edit(func(b maker) { b.annotate(fairlead.AnnotationPaused, "true") }) })
			c.on(400, "", func() { c.edit(func(b maker) { delete(b.Annotations, fairlead.AnnotationPaused) }) })
		}, map[string]float64{"completed": 1, "timeout": 1, "Applying": 2, "Promoting": 1, "reason RolloutTimeout": 1}},
		"timed out": {func(c *cluster) {
			c.m = maker{c.m}.timeout("1m").Materialize
			c.on(90, "", func() { c.catchesUp = 0 })
			c.roll(100, "v2")
			c.on(300, "", func() { c.catchesUp = time.Second })
			c.roll(310, "v3")
		}, map[string]float64{"completed": 2, "timeout": 1, "Applying": 3, "Promoting": 2, "reason Applied": 1}},
	}
	for name, story := range cases {
		t.Run(name, func(t *testing.T) {
			rolloutsByOutcome.Reset()
			phaseDuration.Reset()
			c := newCluster(t)
			story.setup(c)
			c.run(at(1000), func() bool { return true }, 0)
			if diff := cmp.Diff(story.want, gathered(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// gathered are how many rollouts have ended in which way, and how many times a phase was measured.
func gathered(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetName() {
			case "fairlead_rollouts_total":
				found[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
			case "fairlead_rollout_reason":
				reason := metric.GetLabel()[2].GetValue()
				found["reason "+reason] = metric.GetGauge().GetValue()
			case "fairlead_rollout_phase_duration_seconds":
				found[metric.GetLabel()[0].GetValue()] = float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return found
}
