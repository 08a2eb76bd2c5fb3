package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// statusAfter is the status that execute writes for a step.
func statusAfter(o Observed, action passage.Action, newID func() string, now time.Time) v1alpha2.MaterializeStatus {
	m := o.Materialize
	status := *m.Status.DeepCopy()
	next := o.Next().Number
	set := func(v assessment) { setCondition(&status, m, v, now) }
	begins := func(generation int64, format string, args ...any) {
		set(assessment{passage.Because(v1alpha2.ReasonApplying, format, args...), &v1alpha2.RolloutProgress{Generation: generation}})
	}
	switch action {
	case ActionIdentify:
		if status.ResourceID == "" {
			status.ResourceID = newID()
		}
		if objects.EnvironmentID(m) == "" {
			status.EnvironmentID = v1alpha2.UUID(m.UID)
		}
	case ActionRehash:
		status.LastCompletedRolloutHash, status.RequestedRolloutHash = o.Completed(), o.Requested()
		status.RolloutHashVersion = o.HashVersion
	case ActionRequest:
		status.RequestedRolloutHash, status.RolloutHashVersion = o.Hash, o.HashVersion
		status.RolloutRequestedAt = ptr.To(metav1.NewTime(now))
		if o.mismatch() != "" {
			status.LastCompletedRolloutHash = o.Completed()
		}
		status.IgnoredForcePromote = ""
		if m.Spec.ForcePromote == o.Hash {
			// A forcePromote from before the request does not approve the rollout.
			status.IgnoredForcePromote = o.Hash
		}
		begins(next, "creating generation %d", next)
	case ActionWithdraw:
		status.RequestedRolloutHash, status.RolloutHashVersion = o.Hash, o.HashVersion
		set(upToDate(status.ActiveGeneration))
		if !o.activeIsReady() {
			begins(status.ActiveGeneration, "restoring generation %d", status.ActiveGeneration)
		}
	case ActionCancel:
		set(timeoutAssessment(o))
	case ActionCommit:
		set(assessment{
			passage.Because(v1alpha2.ReasonPromoting, "promoting generation %d", next), &v1alpha2.RolloutProgress{Generation: next},
		})
	case ActionComplete:
		status.ActiveGeneration = next
		reached := o.Requested()
		if made := o.Next(); made.Record != nil && made.Hash != reached && o.UnknownHash == nil {
			// The requested generation was lost during the promotion, and this one replaced it.
			reached = made.Hash
			status.RequestedRolloutHash, status.RolloutHashVersion = reached, o.HashVersion
		}
		// The requested hash may be of an older algorithm, because hashes are not rehashed during a promotion.
		status.LastCompletedRolloutHash = status.RequestedRolloutHash
		status.LastCompletedRolloutEnvironmentdImageRef = o.imageOf(o.Next())
		if o.Hash == reached {
			set(upToDate(next))
		} else {
			begins(next+1, "generation %d is active, and the spec has changed since its creation", next)
		}
	}
	return status
}

// imageOf is the image of environmentd in a generation, as far as known.
func (o Observed) imageOf(g *Generation) string {
	switch {
	case g.Record != nil:
		return g.Record.Materialize.Spec.EnvironmentdImageRef
	case g.StatefulSet != nil && len(g.StatefulSet.Spec.Template.Spec.Containers) > 0:
		return g.StatefulSet.Spec.Template.Spec.Containers[0].Image
	}
	return o.Materialize.Spec.EnvironmentdImageRef
}
