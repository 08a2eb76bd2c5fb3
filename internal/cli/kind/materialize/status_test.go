package materialize

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout"
)

// status is that of a scene, with steps in place of its plan: what that is made of is not in the scene.
func (s scene) status(t *testing.T, now time.Time, hold *passage.Reason, steps ...passage.Step) *status {
	t.Helper()
	e := s.environment(t)
	return newStatus(e, passage.Plan{
		Passage: v1alpha2.PassageRollout, Target: "generation 2", Hold: hold, Steps: steps,
		Subject: passage.Object{
			APIVersion: v1alpha2.GroupVersion.String(), Kind: v1alpha2.MaterializeKind, Namespace: e.Materialize.Namespace, Name: e.Materialize.Name,
		},
	}, now)
}

// from are the steps of a rollout from one of them on, which runs.
func from(action passage.Action) []passage.Step {
	all := []passage.Action{
		rollout.ActionApply, rollout.ActionAwait, rollout.ActionCatchUp, rollout.ActionApprove, rollout.ActionCommit, rollout.ActionPromote,
		rollout.ActionSwitch, rollout.ActionRemove, rollout.ActionRemove, rollout.ActionComplete,
	}
	var steps []passage.Step
	for _, a := range all[slices.Index(all, action):] {
		steps = append(steps, passage.Step{Action: a, State: passage.Pending})
	}
	steps[0].State = passage.Running
	return steps
}

func TestStatusOfRollout(t *testing.T) {
	v1, v2 := spec("v1"), spec("v2")
	immediate := spec("v2", strategy(v1alpha2.RolloutImmediatelyPromoteCausingDowntime))
	cases := map[string]struct {
		scene scene
		hold  *passage.Reason
		steps []passage.Step
		want  string
		code  int
	}{
		"catches up": {
			scene{
				m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonApplying, message: "creating generation 2", leader: v1alpha2.LeaderInitializing,
				after: 12 * time.Minute, pods: []corev1.Pod{makePod("mza1b2c3d4e5-environmentd-2-0", true, "")},
			}, nil, from(rollout.ActionCatchUp),
			`Materialize shop/mz to generation 2: InProgress
Applying: creating generation 2

Phase:      Applying
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   WaitUntilReady
Next:       Initializing
Requested:  12m ago
Timeout:    in 48m, if it is not promoting by then
To come:    catch up, approve, commit, promote, switch, remove, complete

POD                             READY   STATUS    AGE
mza1b2c3d4e5-environmentd-2-0   yes     Running   30s

To promote generation 2 as soon as its pods are ready, caught up or not: fairlead promote mzs mz -n shop
To return to generation 1: fairlead abort mzs mz -n shop
`, console.ExitUnfinished,
		},
		"cannot pull": {
			scene{
				m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonApplying, message: "creating generation 2",
				after: 12 * time.Minute, pods: []corev1.Pod{makePod("mza1b2c3d4e5-environmentd-2-0", false, "ImagePullBackOff")},
			}, nil, from(rollout.ActionAwait),
			`Materialize shop/mz to generation 2: InProgress
Applying: creating generation 2

Phase:      Applying
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   WaitUntilReady
Next:       -
Requested:  12m ago
Timeout:    in 48m, if it is not promoting by then
To come:    await, catch up, approve, commit, promote, switch, remove, complete

POD                             READY   STATUS             AGE
mza1b2c3d4e5-environmentd-2-0   no      ImagePullBackOff   30s

To promote generation 2 as soon as its pods are ready, caught up or not: fairlead promote mzs mz -n shop
To return to generation 1: fairlead abort mzs mz -n shop
`, console.ExitUnfinished,
		},
		"waits to be promoted": {
			scene{
				m: spec("v2", strategy(v1alpha2.RolloutManuallyPromote)), serves: v1, requested: spec("v2", strategy(v1alpha2.RolloutManuallyPromote)),
				phase: v1alpha2.ReasonReadyToPromote, message: "generation 2 is ready", leader: v1alpha2.LeaderReadyToPromote, after: 30 * time.Minute,
			}, nil, from(rollout.ActionApprove),
			`Materialize shop/mz to generation 2: InProgress
ReadyToPromote: generation 2 is ready

Phase:      ReadyToPromote
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   ManuallyPromote
Next:       ReadyToPromote
Requested:  30m ago
Timeout:    in 30m, if it is not promoting by then
To come:    approve, commit, promote, switch, remove, complete

To promote generation 2: fairlead promote mzs mz -n shop
To return to generation 1: fairlead abort mzs mz -n shop
`, console.ExitUnfinished,
		},
		"waits to be promoted, and was once before": {
			scene{
				m: spec("v2", promoted(t, v2)), serves: v1, requested: v2, ignored: v2,
				phase: v1alpha2.ReasonReadyToPromote, message: "generation 2 is ready", leader: v1alpha2.LeaderReadyToPromote, after: 30 * time.Minute,
			}, nil, from(rollout.ActionApprove),
			`Materialize shop/mz to generation 2: InProgress
ReadyToPromote: generation 2 is ready

Phase:      ReadyToPromote
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   WaitUntilReady
Next:       ReadyToPromote
Requested:  30m ago
Timeout:    in 30m, if it is not promoting by then
To come:    approve, commit, promote, switch, remove, complete

To promote generation 2: fairlead promote mzs mz -n shop
To return to generation 1: fairlead abort mzs mz -n shop
`, console.ExitUnfinished,
		},
		"takes over": {
			scene{
				m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonPromoting, message: "promoting generation 2", leader: v1alpha2.LeaderPromoting,
				after: 2 * time.Hour,
			}, nil, from(rollout.ActionPromote),
			`Materialize shop/mz to generation 2: InProgress
Promoting: promoting generation 2

Phase:      Promoting
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   WaitUntilReady
Next:       Promoting
Requested:  120m ago
To come:    promote, switch, remove, complete

The promotion has started and cannot be aborted.
`, console.ExitUnfinished,
		},
		"took too long": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonRolloutTimeout, message: "generation 2 was not ready", after: 2 * time.Hour},
			nil, []passage.Step{{Action: rollout.ActionCancel, State: passage.Failed}},
			`Materialize shop/mz to generation 2: Failed
RolloutTimeout: generation 2 was not ready

Phase:      RolloutTimeout
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   WaitUntilReady
Next:       -
Requested:  120m ago

To return to generation 1: fairlead abort mzs mz -n shop
`, console.ExitFailed,
		},
		"cannot be made": {
			scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonFailedDeploy, message: "apply: forbidden", after: time.Minute},
			nil, from(rollout.ActionApply),
			`Materialize shop/mz to generation 2: InProgress
FailedDeploy: apply: forbidden

Phase:      FailedDeploy
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   WaitUntilReady
Next:       -
Requested:  60s ago
Timeout:    in 59m, if it is not promoting by then
To come:    apply, await, catch up, approve, commit, promote, switch, remove, complete

To return to generation 1: fairlead abort mzs mz -n shop
`, console.ExitUnfinished,
		},
		"took too long, and is paused": {
			scene{
				m: spec("v2", annotated(fairlead.AnnotationPaused, "true")), serves: v1, requested: v2, phase: v1alpha2.ReasonRolloutTimeout,
				message: "generation 2 was not ready; it is paused", after: 2 * time.Hour,
			}, passage.Hold(rollout.CodePaused, "it is paused"), []passage.Step{{Action: rollout.ActionCancel, State: passage.Failed}},
			`Materialize shop/mz to generation 2: Failed
RolloutTimeout: generation 2 was not ready; it is paused

Phase:      RolloutTimeout
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   WaitUntilReady
Next:       -
Requested:  120m ago

To return to generation 1: fairlead abort mzs mz -n shop
`, console.ExitFailed,
		},
		"took too long, and was paused before all was removed": {
			scene{
				m: spec("v2", annotated(fairlead.AnnotationPaused, "true")), serves: v1, requested: v2, phase: v1alpha2.ReasonRolloutTimeout,
				message: "generation 2 was not ready; it is paused", after: 2 * time.Hour,
			}, passage.Hold(rollout.CodePaused, "it is paused"), []passage.Step{{Action: rollout.ActionRemove, State: passage.Pending}},
			`Materialize shop/mz to generation 2: Held
RolloutTimeout: generation 2 was not ready; it is paused

Phase:      RolloutTimeout
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   WaitUntilReady
Next:       -
Requested:  120m ago
To come:    remove

To return to generation 1: fairlead abort mzs mz -n shop
`, console.ExitFailed,
		},
		"took too long, and is forced anew": {
			scene{
				m: spec("v2", annotated(v1alpha2.AnnotationForceRollout, "again")), serves: v1, requested: v2, phase: v1alpha2.ReasonRolloutTimeout,
				message: "generation 2 was not ready", after: 2 * time.Hour,
			}, nil, from(rollout.ActionApply),
			`Materialize shop/mz to generation 2: InProgress
RolloutTimeout: generation 2 was not ready

Phase:      RolloutTimeout
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   WaitUntilReady
Next:       -
To come:    apply, await, catch up, approve, commit, promote, switch, remove, complete

To return to generation 1: fairlead abort mzs mz -n shop
`, console.ExitUnfinished,
		},
		"causes downtime": {
			scene{
				m: immediate, serves: v1, requested: immediate, ended: true, phase: v1alpha2.ReasonApplying,
				message: "creating generation 2: StatefulSet shop/x: 0 of 1 pods ready", counted: &v1alpha2.PodCount{Desired: 1}, after: time.Minute,
				pods: []corev1.Pod{makePod("mza1b2c3d4e5-environmentd-2-0", true, "")},
			}, nil, from(rollout.ActionAwait),
			`Materialize shop/mz to generation 2: InProgress
Applying: creating generation 2: StatefulSet shop/x: 1 of 1 pods ready

Phase:      Applying
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Serves:     no generation: generation 1 was stopped to make room for generation 2
Strategy:   ImmediatelyPromoteCausingDowntime
Next:       -
Requested:  60s ago
Timeout:    in 59m, if it is not promoting by then
To come:    await, catch up, approve, commit, promote, switch, remove, complete

POD                             READY   STATUS    AGE
mza1b2c3d4e5-environmentd-2-0   yes     Running   30s

To start generation 1 again: fairlead abort mzs mz -n shop
`, console.ExitUnfinished,
		},
		"paused": {
			scene{
				m: spec("v2", annotated(fairlead.AnnotationPaused, "true")), serves: v1, requested: v2, phase: v1alpha2.ReasonApplying,
				message: "generation 2 waits", after: time.Minute,
			}, passage.Hold(rollout.CodePaused, "it is paused"), from(rollout.ActionApply),
			`Materialize shop/mz to generation 2: Held
it is paused

Phase:      Applying
Generation: 1 -> 2
Image:      materialize/environmentd:v1 -> materialize/environmentd:v2
Strategy:   WaitUntilReady
Next:       -
Requested:  60s ago
Timeout:    in 59m, if it is not promoting by then
To come:    apply, await, catch up, approve, commit, promote, switch, remove, complete

To promote generation 2 as soon as its pods are ready, caught up or not: fairlead promote mzs mz -n shop
To return to generation 1: fairlead abort mzs mz -n shop
`, console.ExitUnfinished,
		},
		"done": {
			scene{m: v1, serves: v1, phase: v1alpha2.ReasonApplied, message: "generation 1 serves the current spec"}, nil, []passage.Step{{Action: rollout.ActionComplete, State: passage.Done}},
			`Materialize shop/mz to generation 2: Completed
Applied: generation 1 serves the current spec

Phase:      Applied
Generation: 1
Image:      materialize/environmentd:v1
`, console.ExitOK,
		},
		"being deleted": {
			scene{m: spec("v1", func(m *v1alpha2.Materialize) { m.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }), serves: v1, phase: v1alpha2.ReasonApplied},
			passage.Hold(rollout.CodeBeingDeleted, "it is being deleted"), []passage.Step{{Action: rollout.ActionApplyShared, State: passage.Pending}},
			`Materialize shop/mz to generation 2: Held
Materialize is being deleted, and its objects with it

Phase:      Applied
Generation: 1
Image:      materialize/environmentd:v1
To come:    ensure
`, console.ExitUnfinished,
		},
		"the first": {
			scene{m: v1}, nil, []passage.Step{{Action: rollout.ActionRequest, State: passage.Pending}},
			`Materialize shop/mz to generation 2: InProgress
rollout: generation 1 is the first

Phase:      -
Generation: none -> 1
Image:      none -> materialize/environmentd:v1
Strategy:   WaitUntilReady
Next:       -
To come:    request
`, console.ExitUnfinished,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			report := c.scene.status(t, now, c.hold, c.steps...)
			render.PrintStatus(&out, render.Text, report)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
			if got := code(report.ExitError()); got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
		})
	}
}

func TestRefreshPodCount(t *testing.T) {
	ready, not := podStatus{Ready: true}, podStatus{}
	none := &v1alpha2.RolloutProgress{Pods: &v1alpha2.PodCount{Ready: 0, Desired: 1}}
	cases := map[string]struct {
		said    string
		counted *v1alpha2.RolloutProgress
		pods    []podStatus
		want    string
	}{
		"another one by now": {"made: StatefulSet x: 0 of 1 pods ready; also: y", none, []podStatus{ready}, "made: StatefulSet x: 1 of 1 pods ready; also: y"},
		"the same":           {"made: StatefulSet x: 0 of 1 pods ready", none, []podStatus{not}, "made: StatefulSet x: 0 of 1 pods ready"},
		"of other pods":      {"made: StatefulSet x: 0 of 1 pods ready", none, nil, "made: StatefulSet x: 0 of 1 pods ready"},
		"of something else":  {"made: environmentd has not caught up yet", &v1alpha2.RolloutProgress{}, []podStatus{ready}, "made: environmentd has not caught up yet"},
		"nothing is counted": {"made: 0 of 1 pods ready", nil, []podStatus{ready}, "made: 0 of 1 pods ready"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := refreshPodCount(c.said, c.counted, c.pods); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestRefusedSpec: what the operator would refuse is no change to come, and not done either.
func TestRefusedSpec(t *testing.T) {
	v1, refused := spec("v1"), spec("v1", digestAlone)
	cases := map[string]struct {
		scene    scene
		proposed *v1alpha2.Materialize
	}{
		"proposed":            {scene{m: v1, serves: v1, phase: v1alpha2.ReasonApplied}, refused},
		"asked for":           {scene{m: refused, serves: v1, phase: v1alpha2.ReasonFailedDeploy}, nil},
		"the first of all":    {scene{m: refused}, nil},
		"not heard of so far": {scene{m: refused, serves: v1, phase: v1alpha2.ReasonApplied}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := c.scene.environment(t)
			plan := e.newPlan(c.proposed, now)
			if got := code(plan.ExitError()); got != console.ExitFailed {
				t.Errorf("plan ends with %d", got)
			}
			failures := plan.Failures()
			if len(failures) != 1 || failures[0].Action != rollout.ActionRequest || failures[0].Reason.Code != passage.Code(v1alpha2.ReasonFailedDeploy) {
				t.Errorf("what cannot be done: %+v", failures)
			}
			if plan.Rollout.RollsOut {
				t.Errorf("it is to roll out: %s", plan.Rollout.Verdict)
			}
			if got := render.NewStatusReport(plan.Plan, passage.Batching{}, nil, true, now); got.State == passage.Completed || len(got.Failures) == 0 {
				t.Errorf("it is %s: %+v", got.State, got.Failures)
			}
		})
	}
}

func TestLineWriterOfRollout(t *testing.T) {
	v1, v2 := spec("v1"), spec("v2")
	name := "mza1b2c3d4e5-environmentd-2-0"
	var reports []*status
	draw := func(s scene, steps ...passage.Step) {
		reports = append(reports, s.status(t, now.Add(time.Duration(len(reports))*time.Second), nil, steps...))
	}
	s := scene{m: v2, serves: v1, requested: v2, phase: v1alpha2.ReasonApplying, message: "creating generation 2", after: time.Minute}
	draw(s, from(rollout.ActionApply)...)
	s.pods, s.message = []corev1.Pod{makePod(name, false, "ContainerCreating")}, "creating generation 2: 0 of 1 pods ready"
	draw(s, from(rollout.ActionAwait)...)
	draw(s, from(rollout.ActionAwait)...)
	s.pods, s.leader = []corev1.Pod{makePod(name, true, "")}, v1alpha2.LeaderInitializing
	s.message = "creating generation 2: environmentd has not caught up yet"
	draw(s, from(rollout.ActionCatchUp)...)
	s.phase, s.message, s.leader = v1alpha2.ReasonPromoting, "promoting generation 2", v1alpha2.LeaderPromoting
	draw(s, from(rollout.ActionPromote)...)
	done := scene{m: v2, serves: v2, phase: v1alpha2.ReasonApplied, message: "generation 2 serves the current spec", pods: s.pods}
	draw(done, passage.Step{Action: rollout.ActionComplete, State: passage.Done})

	var out bytes.Buffer
	printer := render.NewLineWriter(&out)
	for _, r := range reports {
		printer.Draw(r)
	}
	want := `12:00:00  Materialize shop/mz to generation 2: InProgress
12:00:00  Applying: creating generation 2
12:00:00  To promote generation 2 as soon as its pods are ready, caught up or not: fairlead promote mzs mz -n shop
12:00:00  To return to generation 1: fairlead abort mzs mz -n shop
12:00:01  Applying: creating generation 2: 0 of 1 pods ready
12:00:01  Pod shop/mza1b2c3d4e5-environmentd-2-0: ContainerCreating
12:00:03  Applying: creating generation 2: environmentd has not caught up yet
12:00:03  Pod shop/mza1b2c3d4e5-environmentd-2-0: Running, ready
12:00:03  environmentd of generation 2: Initializing
12:00:04  Promoting: promoting generation 2
12:00:04  environmentd of generation 2: Promoting
12:00:04  The promotion has started and cannot be aborted.
12:00:05  Materialize shop/mz to generation 2: Completed
12:00:05  Applied: generation 2 serves the current spec
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
