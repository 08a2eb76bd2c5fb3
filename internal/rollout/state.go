package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// completed is the hash of the spec that was last rolled out.
func (o Observed) completed() string {
	if o.Relabelled != nil {
		return o.Relabelled.Completed
	}
	return o.Materialize.Status.LastCompletedRolloutHash
}

// requested is the hash of the spec whose rollout was last asked for.
func (o Observed) requested() string {
	if o.Relabelled != nil {
		return o.Relabelled.Requested
	}
	return o.Materialize.Status.RequestedRolloutHash
}

// underway tells whether the rollout of the spec, as it is now, has been written down.
func (o Observed) underway() bool {
	return o.requested() == o.Hash && o.Hash != o.completed() && o.Materialize.Status.RolloutRequestedAt != nil
}

// refused is why the spec cannot be rolled out, nil if it can.
func (o Observed) validateSpec() error {
	_, err := objects.SiblingImage(o.Materialize.Spec.EnvironmentdImageRef, objects.AppBalancerd)
	return err
}

// promoting tells whether the point of no return has been passed, and what follows has not been completed.
func (o Observed) promoting() bool {
	condition := meta.FindStatusCondition(o.Materialize.Status.Conditions, v1alpha2.ConditionUpToDate)
	return condition != nil && condition.Reason == string(v1alpha2.ReasonPromoting)
}

// active is the generation that serves, nil before the first.
func (o Observed) active() *Generation {
	if o.Materialize.Status.ActiveGeneration == 0 {
		return nil
	}
	return o.generation(o.Materialize.Status.ActiveGeneration)
}

// back tells whether the generation that serves has its pods: it may have been ended, to make room. Nothing is waited for of
// what others have made.
func (o Observed) activeIsReady() bool {
	active := o.active()
	return active == nil || active.Foreign || active.rolledOut()
}

// down tells whether nothing serves at present that did before.
func (o Observed) isDown() bool {
	active := o.active()
	if active == nil || o.promoting() && (o.Leader.Status == v1alpha2.LeaderIsLeader || o.serviceSwitched()) {
		return false
	}
	return active.isIdle()
}

// next is the generation that will serve.
func (o Observed) next() *Generation { return o.generation(o.Materialize.Status.ActiveGeneration + 1) }

// forced tells whether somebody asks to promote this very rollout at once.
func (o Observed) forced() bool {
	return o.requested() != "" && o.Materialize.Spec.ForcePromote == o.requested() && !o.forcePromoteIsStale()
}

// leftOver tells whether forcePromote is from before the rollout was asked for. The same spec has the same hash each time.
func (o Observed) forcePromoteIsStale() bool {
	m := o.Materialize
	return m.Spec.ForcePromote != "" && m.Spec.ForcePromote == m.Status.IgnoredForcePromote
}

// strategy of the rollout. What is promoting has its own, whatever the spec says by now.
func (o Observed) strategy() v1alpha2.RolloutStrategy {
	strategy := o.Materialize.Spec.RolloutStrategy
	if next := o.next(); o.promoting() && next.Record != nil {
		strategy = next.Record.Materialize.Spec.RolloutStrategy
	}
	if strategy == "" {
		return v1alpha2.DefaultRolloutStrategy
	}
	return strategy
}

// hasty tells whether nobody waits until the next generation has caught up.
func (o Observed) skipsCatchUp() bool {
	return o.forced() || o.strategy() == v1alpha2.RolloutImmediatelyPromoteCausingDowntime
}

// deadline is when the rollout that is underway is cancelled.
func (o Observed) deadline() time.Time {
	timeout, err := o.Materialize.Spec.RolloutRequestTimeout.Parse()
	if err != nil {
		timeout = v1alpha2.DefaultRolloutRequestTimeout
	}
	return o.Materialize.Status.RolloutRequestedAt.Add(timeout)
}

func (o Observed) expired(now time.Time) bool { return o.underway() && !now.Before(o.deadline()) }

// worthAsking tells whether the plan depends on what the next generation says.
func (o Observed) needsLeaderStatus() bool {
	if !o.Materialize.DeletionTimestamp.IsZero() {
		return false
	}
	if o.promoting() {
		return !o.serviceSwitched()
	}
	next := o.next()
	return o.underway() && o.matchesSpec(next) && next.rolledOut()
}

// current tells whether a generation is of the spec as it is now, and neither its pods nor its record are about to go. What
// else does is made anew.
func (o Observed) matchesSpec(g *Generation) bool {
	if g.Foreign {
		return false
	}
	for _, object := range g.Objects {
		if kind := object.GroupVersionKind(); object.GetDeletionTimestamp() != nil && (kind == objects.KindStatefulSet || kind == objects.KindConfigMap) {
			return false
		}
	}
	return g.Hash == o.Hash
}

// switched tells whether the public Service leads to the next generation already. That is done when that is the leader,
// and there is no way back, even if it should forget.
func (o Observed) serviceSwitched() bool {
	m := o.Materialize
	public := o.SharedObjects[passage.Object{
		APIVersion: objects.KindService.GroupVersion().String(), Kind: objects.KindService.Kind, Namespace: m.Namespace, Name: objects.NamesOf(m).Environmentd(),
	}]
	if public == nil {
		return false
	}
	selector, _, err := unstructured.NestedStringMap(public.Object, "spec", "selector")
	return err == nil && equality.Semantic.DeepEqual(selector, o.selector(o.next()))
}

// selector of the pods of a generation. Those of somebody else's carry labels of theirs.
func (o Observed) selector(g *Generation) map[string]string {
	if g.Foreign && g.StatefulSet.Spec.Selector != nil {
		return g.StatefulSet.Spec.Selector.MatchLabels
	}
	if g.Backup != nil && g.StatefulSet == nil {
		if selector, found, err := unstructured.NestedStringMap(g.Backup.Object, "spec", "selector", "matchLabels"); found && err == nil {
			return selector
		}
	}
	return objects.NamesOf(o.Materialize).GenerationLabels(g.Number)
}

// served is what the last rollout that was completed has left behind.
func (o Observed) activeConfig() objects.ActiveConfig {
	m, active := o.Materialize, o.active()
	var now objects.ActiveConfig
	switch next := o.next(); {
	case !o.promoting():
	case next.Record != nil:
		now.Next = &next.Record.Materialize.Spec
	case o.Hash == o.requested():
		now.Next = &m.Spec
	}
	if active == nil {
		return now
	}
	now.Image, now.Selector = m.Status.LastCompletedRolloutEnvironmentdImageRef, o.selector(active)
	switch {
	case active.Record != nil:
		now.Spec = &active.Record.Materialize.Spec
	case o.Hash == o.completed():
		now.Spec = &m.Spec
	}
	if now.Image == "" && now.Spec != nil {
		now.Image = now.Spec.EnvironmentdImageRef
	}
	return now
}
