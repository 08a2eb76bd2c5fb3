package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// TestLegacyProgress reads messages as they were written before status.progress existed.
func TestLegacyProgress(t *testing.T) {
	answer := func(status v1alpha2.LeaderStatus) *v1alpha2.LeaderAnswer {
		return &v1alpha2.LeaderAnswer{Status: status}
	}
	const set = "StatefulSet shop/mza1b2c3d4e5-environmentd-2"
	cases := map[string]struct {
		reason  v1alpha2.Reason
		message string
		want    *v1alpha2.RolloutProgress
	}{
		"nothing rolls out": {v1alpha2.ReasonApplied, "generation 1 serves what the spec asks for", nil},
		"just begun":        {v1alpha2.ReasonApplying, "generation 2 is made", &v1alpha2.RolloutProgress{Generation: 2}},
		"pods start": {v1alpha2.ReasonApplying, "generation 2 is made: " + set + ", 0 of 1 ready", &v1alpha2.RolloutProgress{
			Generation: 2, Pods: &v1alpha2.PodCount{Desired: 1}, Message: set + ", 0 of 1 ready",
		}},
		"pods start, and something else fails": {
			v1alpha2.ReasonApplying, "generation 2 is made: " + set + ", 1 of 3 ready; besides, keep Deployment shop/x: forbidden",
			&v1alpha2.RolloutProgress{Generation: 2, Pods: &v1alpha2.PodCount{Ready: 1, Desired: 3}, Message: set + ", 1 of 3 ready"},
		},
		"pods of the active generation start": {
			v1alpha2.ReasonApplying, "generation 1 is to serve again: StatefulSet shop/x, 0 of 1 ready",
			&v1alpha2.RolloutProgress{Generation: 1, Pods: &v1alpha2.PodCount{Desired: 1}, Message: "StatefulSet shop/x, 0 of 1 ready"},
		},
		"catches up": {v1alpha2.ReasonApplying, "generation 2 is made: " + set + ", it has yet to catch up", &v1alpha2.RolloutProgress{
			Generation: 2, Leader: answer(v1alpha2.LeaderInitializing), Message: set + ", it has yet to catch up",
		}},
		"does not answer": {
			v1alpha2.ReasonApplying, "generation 2 is made: " + set + ", environmentd does not answer: the connection is refused",
			&v1alpha2.RolloutProgress{
				Generation: 2, Message: set + ", environmentd does not answer: the connection is refused",
				Leader: &v1alpha2.LeaderAnswer{Status: v1alpha2.LeaderUnknown, Message: "environmentd does not answer: the connection is refused"},
			},
		},
		"answers nonsense": {
			v1alpha2.ReasonPromoting, "generation 2 takes over: promote " + set + ": environmentd answers /api/leader/promote in a way that makes no sense (HTTP 500)",
			&v1alpha2.RolloutProgress{
				Generation: 2, Message: "promote " + set + ": environmentd answers /api/leader/promote in a way that makes no sense (HTTP 500)",
				Leader: &v1alpha2.LeaderAnswer{
					Status: v1alpha2.LeaderUnknown, Message: "environmentd answers /api/leader/promote in a way that makes no sense (HTTP 500)",
				},
			},
		},
		"waits for a person": {v1alpha2.ReasonReadyToPromote, "generation 2 is ready; it is promoted when forcePromote is abc", &v1alpha2.RolloutProgress{
			Generation: 2, Leader: answer(v1alpha2.LeaderReadyToPromote), Message: "ready, and not promoted",
		}},
		"takes over": {v1alpha2.ReasonPromoting, "generation 2 takes over: " + set + ", it takes over", &v1alpha2.RolloutProgress{
			Generation: 2, Leader: answer(v1alpha2.LeaderPromoting), Message: set + ", it takes over",
		}},
		"started anew": {v1alpha2.ReasonPromoting, "generation 2 takes over: " + set + ", it has started anew, and is not ready yet", &v1alpha2.RolloutProgress{
			Generation: 2, Leader: answer(v1alpha2.LeaderInitializing), Message: set + ", it has started anew, and is not ready yet",
		}},
		"leads": {v1alpha2.ReasonPromoting, "generation 2 takes over: Service shop/x, what it leads to is to be what leads", &v1alpha2.RolloutProgress{
			Generation: 2, Leader: answer(v1alpha2.LeaderIsLeader), Message: "Service shop/x, what it leads to is to be what leads",
		}},
		"paused": {
			v1alpha2.ReasonApplying, "generation 2 waits: it is paused; go on with `fairlead resume mzs mz -n shop`",
			&v1alpha2.RolloutProgress{Generation: 2, Message: "paused"},
		},
		"cannot be made": {
			v1alpha2.ReasonFailedDeploy, "apply " + set + ": forbidden", &v1alpha2.RolloutProgress{Generation: 2, Message: "apply " + set + ": forbidden"},
		},
		"timed out": {
			v1alpha2.ReasonRolloutTimeout, "generation 2 was not ready; at the end: " + set + ", 0 of 1 ready",
			&v1alpha2.RolloutProgress{Generation: 2, Message: set + ", 0 of 1 ready"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := makeMaterialize().serving(t, 1, makeMaterialize()).reported(c.reason).saying(c.message)
			if diff := cmp.Diff(c.want, Progress(m.Materialize)); diff != "" {
				t.Error(diff)
			}
			m.Status.Progress = &v1alpha2.RolloutProgress{Generation: 7}
			if diff := cmp.Diff(m.Status.Progress, Progress(m.Materialize)); diff != "" {
				t.Errorf("although there is progress: %s", diff)
			}
		})
	}
}
