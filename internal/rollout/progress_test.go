package rollout

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// What the operator writes down about the answers of environmentd can be read again.
func TestHeard(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	type answer = v1alpha2.LeaderAnswer
	const silence = "environmentd does not answer: connection refused"
	cases := map[string]struct {
		strategy v1alpha2.RolloutStrategy
		phase    v1alpha2.Reason
		answer   answer
	}{
		"catches up":                   {v1alpha2.RolloutWaitUntilReady, v1alpha2.ReasonApplying, answer{Status: v1alpha2.LeaderInitializing}},
		"silent while it catches up":   {v1alpha2.RolloutWaitUntilReady, v1alpha2.ReasonApplying, answer{Status: v1alpha2.LeaderUnknown, Message: silence}},
		"garbled while it catches up":  {v1alpha2.RolloutWaitUntilReady, v1alpha2.ReasonApplying, answer{Status: v1alpha2.LeaderUnknown, Message: "environmentd sends an invalid response to /api/leader/status (HTTP 200)"}},
		"waits for a person":           {v1alpha2.RolloutManuallyPromote, v1alpha2.ReasonApplying, answer{Status: v1alpha2.LeaderReadyToPromote}},
		"takes over":                   {v1alpha2.RolloutWaitUntilReady, v1alpha2.ReasonPromoting, answer{Status: v1alpha2.LeaderPromoting}},
		"silent while it takes over":   {v1alpha2.RolloutWaitUntilReady, v1alpha2.ReasonPromoting, answer{Status: v1alpha2.LeaderUnknown, Message: silence}},
		"started anew":                 {v1alpha2.RolloutWaitUntilReady, v1alpha2.ReasonPromoting, answer{Status: v1alpha2.LeaderInitializing}},
		"leads, and nobody knows yet":  {v1alpha2.RolloutWaitUntilReady, v1alpha2.ReasonPromoting, answer{Status: v1alpha2.LeaderIsLeader}},
		"was never asked, as it seems": {v1alpha2.RolloutWaitUntilReady, v1alpha2.ReasonPromoting, answer{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := seen(t, c.strategy, c.phase, now)
			o.Leader = c.answer
			for _, failed := range []applyErrors{{}, {tolerated: []error{errors.New("ensure Deployment shop/x: somebody does not want it")}}} {
				reported := assess(o, decide(o, now), failed, now)
				m := o.Materialize.DeepCopy()
				setCondition(&m.Status, m, reported, now)
				if diff := cmp.Diff(c.answer, RecordedAnswers(m)(t.Context(), o.Next().address(m))); diff != "" {
					t.Errorf("%s: %s", reported.reason, diff)
				}
			}
		})
	}
}

// TestProgressFollowsCondition: progress alone is never written, so that a status is written no more often for it.
func TestProgressFollowsCondition(t *testing.T) {
	m := makeMaterialize().serving(t, 1, makeMaterialize()).Materialize
	waits := func(ready int32) *v1alpha2.RolloutProgress {
		return &v1alpha2.RolloutProgress{Generation: 2, Pods: &v1alpha2.PodCount{Ready: ready, Desired: 2}}
	}
	said := passage.Because(v1alpha2.ReasonApplying, "creating generation 2")
	setCondition(&m.Status, m, assessment{said, waits(0)}, at(1))
	setCondition(&m.Status, m, assessment{said, waits(1)}, at(2))
	if diff := cmp.Diff(waits(0), m.Status.Progress); diff != "" {
		t.Errorf("with the same message: %s", diff)
	}
	said.Message += ": 1 of 2 pods ready"
	setCondition(&m.Status, m, assessment{said, waits(1)}, at(3))
	if diff := cmp.Diff(waits(1), m.Status.Progress); diff != "" {
		t.Errorf("with another message: %s", diff)
	}
	setCondition(&m.Status, m, upToDate(2), at(4))
	if m.Status.Progress != nil {
		t.Errorf("when nothing is left to do: %+v", m.Status.Progress)
	}
}
