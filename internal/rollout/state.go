package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// Completed is the hash of the spec that was last rolled out completely. The status does not have the last word: a spec that
// the active generation is known not to run is not rolled out.
func (o Observed) Completed() string {
	if o.mismatch() != "" {
		return o.Active().Hash
	}
	return o.reportedCompleted()
}

func (o Observed) reportedCompleted() string {
	if o.Rehashed != nil {
		return o.Rehashed.Completed
	}
	return o.Materialize.Status.LastCompletedRolloutHash
}

// mismatch says in what the active generation is known not to run the spec, although the status takes the spec for rolled
// out. Empty: nothing is known.
func (o Observed) mismatch() string {
	active, spec := o.Active(), &o.Materialize.Spec
	if active == nil || o.reportedCompleted() != o.Hash {
		return ""
	}
	field := ""
	switch image := o.Materialize.Status.LastCompletedRolloutEnvironmentdImageRef; {
	case active.Record != nil && active.Hash != o.Hash:
		return "was created from another spec"
	case active.Record != nil:
	case active.Foreign:
		field = objects.Mismatch(spec, active.StatefulSet)
	case active.StatefulSet == nil && image != "" && image != spec.EnvironmentdImageRef:
		field = "environmentdImageRef"
	}
	if field == "" {
		return ""
	}
	return "does not run the spec's " + field
}

// Requested is the hash of the spec whose rollout was last requested.
func (o Observed) Requested() string {
	if o.Rehashed != nil {
		return o.Rehashed.Requested
	}
	return o.Materialize.Status.RequestedRolloutHash
}

// Underway tells whether the rollout of the current spec has been requested, and is not complete.
func (o Observed) Underway() bool {
	return o.Requested() == o.Hash && o.Hash != o.reportedCompleted() && o.Materialize.Status.RolloutRequestedAt != nil
}

// validateSpec is why the spec cannot be rolled out, nil if it can.
func (o Observed) validateSpec() error {
	if _, err := objects.SiblingImage(o.Materialize.Spec.EnvironmentdImageRef, objects.AppBalancerd); err != nil {
		return err
	}
	if refused := o.refusesAccount(); refused != nil {
		return refused
	}
	return nil
}

// Promoting tells whether the promotion has been committed and is not complete.
func (o Observed) Promoting() bool {
	return hasReason(o.Materialize.Status, v1alpha2.ReasonPromoting)
}

// Active is the active generation, nil before the first.
func (o Observed) Active() *Generation {
	if o.Materialize.Status.ActiveGeneration == 0 {
		return nil
	}
	return o.generation(o.Materialize.Status.ActiveGeneration)
}

// activeIsReady tells whether the active generation has its pods: it may have been stopped to make room. Foreign generations
// are not waited for.
func (o Observed) activeIsReady() bool {
	active := o.Active()
	return active == nil || active.Foreign || active.rolledOut()
}

// IsDown tells whether no generation serves although one was active.
func (o Observed) IsDown() bool {
	active := o.Active()
	if active == nil || o.Promoting() && (o.Leader.Status == v1alpha2.LeaderIsLeader || o.serviceSwitched()) {
		return false
	}
	return active.isIdle()
}

// Next is the generation after the active one.
func (o Observed) Next() *Generation { return o.generation(o.Materialize.Status.ActiveGeneration + 1) }

// Forced tells whether spec.forcePromote asks to promote this rollout.
func (o Observed) Forced() bool {
	return o.Requested() != "" && o.Materialize.Spec.ForcePromote == o.Requested() && !o.ForcePromoteIsStale()
}

// ForcePromoteIsStale tells whether spec.forcePromote is older than the request. The same spec has the same hash each time.
func (o Observed) ForcePromoteIsStale() bool {
	m := o.Materialize
	return m.Spec.ForcePromote != "" && m.Spec.ForcePromote == m.Status.IgnoredForcePromote
}

// strategy of the rollout. A promotion keeps the strategy that it started with.
func (o Observed) strategy() v1alpha2.RolloutStrategy {
	strategy := o.Materialize.Spec.RolloutStrategy
	if next := o.Next(); o.Promoting() && next.Record != nil {
		strategy = next.Record.Materialize.Spec.RolloutStrategy
	}
	if strategy == "" {
		return v1alpha2.DefaultRolloutStrategy
	}
	return strategy
}

// skipsCatchUp tells whether the promotion does not wait for the catch-up.
func (o Observed) skipsCatchUp() bool {
	return o.Forced() || o.strategy() == v1alpha2.RolloutImmediatelyPromoteCausingDowntime
}

// deadline is when the rollout that is underway times out.
func (o Observed) deadline() time.Time {
	timeout, err := o.Materialize.Spec.RolloutRequestTimeout.Parse()
	if err != nil {
		timeout = v1alpha2.DefaultRolloutRequestTimeout
	}
	return o.Materialize.Status.RolloutRequestedAt.Add(timeout)
}

func (o Observed) Expired(now time.Time) bool { return o.Underway() && !now.Before(o.deadline()) }

// needsLeaderStatus tells whether the plan depends on the answer of the next generation's environmentd.
func (o Observed) needsLeaderStatus() bool {
	if !o.Materialize.DeletionTimestamp.IsZero() {
		return false
	}
	if o.Promoting() {
		return !o.serviceSwitched()
	}
	next := o.Next()
	return o.Underway() && o.matchesSpec(next) && next.rolledOut()
}

// matchesSpec tells whether a generation was created from the current spec, and neither its StatefulSet nor its record is
// being deleted. Its other objects are created again when they are gone.
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

// serviceSwitched tells whether the public Service selects the next generation already. That happens only after environmentd
// was the leader, and is final even if environmentd restarts.
func (o Observed) serviceSwitched() bool {
	public := o.SharedObjects[objects.IdentityOf(o.Materialize, objects.KindService, objects.NamesOf(o.Materialize).Environmentd())]
	if public == nil {
		return false
	}
	selector, _, err := unstructured.NestedStringMap(public.Object, "spec", "selector")
	return err == nil && equality.Semantic.DeepEqual(selector, o.selector(o.Next()))
}

// selector of the pods of a generation. Pods of foreign generations carry other labels.
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

// activeConfig is what the shared objects depend on: the active generation, and the one being promoted.
func (o Observed) activeConfig() objects.ActiveConfig {
	m, active := o.Materialize, o.Active()
	now := objects.ActiveConfig{AccountRefused: o.refusesAccount() != nil && !o.runsAccount(m.Spec.ServiceAccountName)}
	switch next := o.Next(); {
	case !o.Promoting():
	case next.Record != nil:
		now.Next = &next.Record.Materialize.Spec
	case o.Hash == o.Requested():
		now.Next = &m.Spec
	}
	if active == nil {
		return now
	}
	now.Image, now.Selector = m.Status.LastCompletedRolloutEnvironmentdImageRef, o.selector(active)
	switch {
	case active.Record != nil:
		now.Spec = &active.Record.Materialize.Spec
	case o.Hash == o.Completed():
		now.Spec = &m.Spec
	}
	if now.Image == "" && now.Spec != nil {
		now.Image = now.Spec.EnvironmentdImageRef
	}
	return now
}

// Refused is why the current spec cannot be rolled out; nil if it can, or has been.
func (o Observed) Refused() error {
	if o.Hash == o.Completed() {
		return nil
	}
	return o.validateSpec()
}

// Deadline is when the rollout that is underway times out. Zero: there is none, or it cannot time out any more.
func (o Observed) Deadline() time.Time {
	if !o.Underway() || o.Promoting() {
		return time.Time{}
	}
	return o.deadline()
}

// NextImage is the image of environmentd in the next generation.
func (o Observed) NextImage() string {
	if next := o.Next(); o.Promoting() || o.matchesSpec(next) {
		return o.imageOf(next)
	}
	return o.Materialize.Spec.EnvironmentdImageRef
}

// WithSpec is the same environment with another spec.
func (o Observed) WithSpec(m *v1alpha2.Materialize) Observed {
	o.Materialize, o.Hash, o.HashVersion = m, currentHasher.of(m), currentHasher.version
	o.Rehashed, o.UnknownHash = nil, nil
	o.rehash(currentHasher)
	if !o.needsLeaderStatus() {
		o.Leader = v1alpha2.LeaderAnswer{}
	}
	return o
}
