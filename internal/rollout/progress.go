package rollout

import (
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/environmentd"
)

// progressOf is the progress of the generation that a rollout waits for. The message of the condition shows all of it, so
// that neither changes without the other.
func progressOf(o Observed, step *passage.Step, failure error) *v1alpha2.RolloutProgress {
	g := o.Next()
	if o.Hash == o.Completed() && !o.Promoting() {
		g = o.generation(o.Materialize.Status.ActiveGeneration)
	}
	p := &v1alpha2.RolloutProgress{Generation: g.Number}
	switch {
	case failure != nil:
		p.Message = failure.Error()
		if silence := (environmentd.NoAnswer{}); errors.As(failure, &silence) {
			p.Leader = &v1alpha2.LeaderAnswer{Status: v1alpha2.LeaderUnknown, Message: silence.Error()}
		}
	case step == nil:
	case step.Action == ActionRemove:
		p.Message = fmt.Sprintf("%s is being deleted", step.Object)
	case step.Action == ActionAwait && step.Progress != "":
		p.Message = fmt.Sprintf("%s: %s", step.Object, step.Progress)
		p.Pods = g.podCount()
	default:
		p.Message = fmt.Sprintf("%s: %s", step.Object, step.Reason.Message)
		p.Leader = leaderAnswer(o, step.Action)
	}
	return p
}

// leaderAnswer is the answer of environmentd if the action depends on it.
func leaderAnswer(o Observed, action passage.Action) *v1alpha2.LeaderAnswer {
	switch action {
	case ActionSwitch:
		return &v1alpha2.LeaderAnswer{Status: v1alpha2.LeaderIsLeader}
	case ActionCatchUp, ActionSkipCatchup, ActionApprove, ActionPromote:
		if o.Leader.Status != "" {
			return &o.Leader
		}
	}
	return nil
}

// FormatPodCount is how a pod count appears in the message of the condition.
func FormatPodCount(c v1alpha2.PodCount) string {
	return fmt.Sprintf("%d of %d pods ready", c.Ready, c.Desired)
}

// Progress is the last reported progress of a rollout. Nil: nothing is being rolled out.
func Progress(m *v1alpha2.Materialize) *v1alpha2.RolloutProgress {
	if m.Status.Progress != nil {
		return m.Status.Progress
	}
	return legacyProgress(m)
}

// lastProgress is what a rollout was last reported to wait for.
func (o Observed) lastProgress() string {
	if p := Progress(o.Materialize); p != nil && p.Generation == o.Next().Number {
		return p.Message
	}
	return ""
}
