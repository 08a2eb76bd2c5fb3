package istio

import (
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// tagSteps are the tags that follow the Istio and have not moved yet. The controller of tags moves them once the target is
// the active revision; until then, the move is a change to come.
func tagSteps(o Observed, target string) []passage.Step {
	var steps []passage.Step
	for _, tag := range o.Tags {
		if tag.Status.IstioRevision == target || !tag.DeletionTimestamp.IsZero() {
			continue
		}
		why := passage.Because(v1.ReasonFollowsIstio, "follows Istio %s; moves when IstioRevision %s is ready",
			o.Istio.Name, target)
		state := passage.Running
		reconciled := meta.FindStatusCondition(tag.Status.Conditions, string(v1.ConditionReconciled))
		if hold := installer.WhilePaused(v1.IstioRevisionTagKind, &tag); hold != nil {
			why = *hold
		} else if reconciled != nil && reconciled.Reason == string(v1.ReasonNameAlreadyExists) {
			why = passage.Because(reconciled.Reason, "%s", reconciled.Message)
		} else if target != o.Istio.Status.ActiveRevisionName {
			state = passage.Pending
		}
		steps = append(steps, passage.Step{
			Object: object(v1.IstioRevisionTagKind, tag.Name),
			Action: ActionMove,
			From:   tag.Status.IstioRevision,
			To:     target,
			State:  state,
			Reason: why,
		})
	}
	return steps
}

// countFollowingTags counts the tags that point to a revision and are about to move to the target. One that is paused is not.
func (o Observed) countFollowingTags(revision, target string) int {
	count := 0
	for _, tag := range o.Tags {
		if tag.Status.IstioRevision == revision && revision != target && !installer.Paused(&tag) {
			count++
		}
	}
	return count
}
