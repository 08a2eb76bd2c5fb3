package rollout

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// The actions of steps.
const (
	// ActionIdentify records the resource ID and the environment ID.
	ActionIdentify passage.Action = "identify"
	// ActionRehash records the hashes of the status by the current algorithm.
	ActionRehash passage.Action = "relabel"
	// ActionRequest records which spec is rolled out, and since when.
	ActionRequest passage.Action = "request"
	// ActionWithdraw records that the spec is that of the active generation again.
	ActionWithdraw passage.Action = "withdraw"
	// ActionApplyShared applies an object that all generations share, or one of the active generation during a promotion.
	ActionApplyShared passage.Action = "ensure"
	// ActionDeleteShared deletes an object that all generations shared.
	ActionDeleteShared passage.Action = "drop"
	// ActionApply applies an object of a generation.
	ActionApply passage.Action = "apply"
	// ActionRemove deletes an object of a generation.
	ActionRemove passage.Action = "remove"
	// ActionAwait waits for pods.
	ActionAwait passage.Action = "await"
	// ActionCatchUp waits until environmentd of a generation is ready to promote.
	ActionCatchUp passage.Action = "catch up"
	// ActionSkipCatchup asks environmentd of a generation to skip the catch-up.
	ActionSkipCatchup passage.Action = "skip catch-up"
	// ActionApprove waits for spec.forcePromote.
	ActionApprove passage.Action = "approve"
	// ActionCommit records that the promotion starts and cannot be undone.
	ActionCommit passage.Action = "commit"
	// ActionPromote asks environmentd of a generation to become the leader.
	ActionPromote passage.Action = "promote"
	// ActionSwitch points the public Service to the generation that leads.
	ActionSwitch passage.Action = "switch"
	// ActionComplete records the next generation as the active one.
	ActionComplete passage.Action = "complete"
	// ActionCancel records that a rollout timed out.
	ActionCancel passage.Action = "cancel"
)

// The reasons of steps.
const (
	CodeFirst     passage.Code = "First"
	CodeChanged   passage.Code = "Changed"
	CodeUnchanged passage.Code = "Unchanged"
	CodeMissing   passage.Code = "Missing"
	CodeDrifted   passage.Code = "Drifted"
	CodeNotAsked  passage.Code = "NotAsked"
	CodeReplaced  passage.Code = "Replaced"
	CodeDowntime  passage.Code = "Downtime"
	CodeNotReady  passage.Code = "NotReady"
	CodeForced    passage.Code = "Forced"
	CodeTakesOver passage.Code = "TakesOver"
	CodeNoAnswer  passage.Code = "NoAnswer"
)

// decision is a plan, and the objects and errors that belong to it.
type decision struct {
	passage.Plan
	// desired are the objects that steps apply.
	desired map[passage.Object]*unstructured.Unstructured
	// specErr is what only a change of the spec resolves; sharedSpecErr likewise, for objects that all generations share.
	specErr, sharedSpecErr error
}

// Plan is all that is left to do until the spec is rolled out, in order: no step starts before those above it have settled.
// If nothing is left, its only step is done.
func Plan(o Observed, now time.Time) passage.Plan {
	plan := decide(o, now).Plan
	noCertificates := o.NoCertManager && objects.WithoutCertManager(o.Materialize.Spec) != nil
	steps := plan.Steps
	plan.Steps = []passage.Step{}
	for _, step := range steps {
		kind := schema.FromAPIVersionAndKind(step.Object.APIVersion, step.Object.Kind)
		if slices.Contains(o.Unlisted, kind) {
			continue
		}
		if noCertificates && kind == objects.KindCertificate && step.Action == ActionApplyShared && step.State == passage.Pending {
			step.State, step.Reason = passage.Failed, passage.Because(v1alpha2.ReasonFailedDeploy, "cert-manager is not installed")
		}
		plan.Steps = append(plan.Steps, step)
	}
	if len(plan.Steps) == 0 && o.Hash == o.Completed() {
		plan.Steps = append(plan.Steps, passage.Step{
			Object: plan.Subject, Action: ActionComplete, To: plan.Target, State: passage.Done,
			Reason: passage.Because(v1alpha2.ReasonApplied, "the active generation serves the current spec"),
		})
	}
	return plan
}

func decide(o Observed, now time.Time) decision {
	m := o.Materialize
	p := &planner{Observed: o, now: now}
	p.desired = map[passage.Object]*unstructured.Unstructured{}
	p.Plan = passage.Plan{
		Passage: v1alpha2.PassageRollout, Subject: p.subject(), Hold: passage.FirstHold(o, gates...), Steps: []passage.Step{},
	}
	if o.Rehashed != nil && !o.Promoting() {
		p.statusStep(ActionRehash, fmt.Sprint(m.Status.RolloutHashVersion), fmt.Sprint(o.HashVersion),
			passage.Because(CodeUnchanged, "the hash algorithm has changed, and the spec has not"))
	}
	p.Target = p.generationName(m.Status.ActiveGeneration + 1)
	p.identify()
	switch {
	case m.Status.ResourceID == "" && o.Active() == nil:
		p.statusStep(ActionRequest, "", o.Hash, passage.Because(CodeFirst, "this is the first rollout"))
		if err := p.validateSpec(); err != nil {
			p.failLastStep(err)
		}
	case m.Status.ResourceID == "":
		// The objects of the environment have no names yet, so what follows is unknown.
	case o.Promoting():
		p.planPromotion()
	case o.Hash == o.Completed():
		p.Target = p.generationName(m.Status.ActiveGeneration)
		p.planUpToDate()
	default:
		p.planRollout()
	}
	return p.decision
}

type planner struct {
	Observed
	decision
	now time.Time
}

// identify records the IDs that are missing. What follows is planned with the environment ID that is recorded.
func (p *planner) identify() {
	m := p.Materialize
	switch {
	case m.Status.ResourceID == "":
		p.statusStep(ActionIdentify, "", "", passage.Because(CodeMissing, "the environment has no resource ID yet"))
	case objects.EnvironmentID(m) == "":
		p.statusStep(ActionIdentify, "", string(m.UID), passage.Because(CodeMissing, "the environment has no environment ID yet"))
	default:
		return
	}
	p.Materialize = m.DeepCopy()
	if objects.EnvironmentID(m) == "" {
		p.Materialize.Status.EnvironmentID = v1alpha2.UUID(m.UID)
	}
}

func (p *planner) generationName(g int64) string { return fmt.Sprintf("generation %d", g) }

// planUpToDate plans for a spec that is that of the active generation.
func (p *planner) planUpToDate() {
	active := p.Active()
	p.planSharedObjects()
	p.applyGeneration(active)
	p.removeOthers(passage.Because(CodeNotAsked, "the spec is that of the active generation again"))
	if p.Requested() != p.Hash {
		// Recorded before the pods are back, so that a later request gets its full timeout.
		p.statusStep(ActionWithdraw, p.Requested(), p.Hash, passage.Because(CodeNotAsked, "the spec is that of the active generation again"))
	}
	if !p.activeIsReady() && !hasReason(p.Materialize.Status, v1alpha2.ReasonApplied) {
		p.await(active)
	}
}

// planRollout plans up to the promotion, and forecasts the steps after it.
func (p *planner) planRollout() {
	next, active := p.Next(), p.Active()
	p.planSharedObjects()
	if err := p.validateSpec(); err != nil {
		// Otherwise the error would show only after the promotion, which cannot be undone.
		p.maintainActive()
		p.statusStep(ActionRequest, p.Requested(), p.Hash, passage.Reason{})
		p.failLastStep(err)
		return
	}
	if !p.Underway() {
		reason := passage.Because(CodeChanged, "the spec has changed since generation %d was created", p.Materialize.Status.ActiveGeneration)
		switch why := p.mismatch(); {
		case active == nil:
			reason = passage.Because(CodeFirst, "this is the first rollout")
		case why != "":
			reason = passage.Because(CodeChanged, "generation %d %s", active.Number, why)
		}
		p.statusStep(ActionRequest, p.Requested(), p.Hash, reason)
	}
	if p.Expired(p.now) {
		p.planCancel()
		return
	}
	if p.matchesSpec(next) {
		p.removeOthers(passage.Because(CodeReplaced, "belongs to neither the active nor the next generation"), next.Number)
	} else {
		p.removeOthers(passage.Because(CodeReplaced, "was created from another spec, and must not be promoted"))
	}
	if p.strategy() == v1alpha2.RolloutImmediatelyPromoteCausingDowntime {
		p.stopGeneration(active)
	} else {
		p.applyGeneration(active)
	}
	p.applyGeneration(next)
	p.await(next)
	p.catchUp()
	p.approve()
	p.step(p.subject(), ActionCommit, p.generationName(p.Materialize.Status.ActiveGeneration), p.Target,
		passage.Because(CodeTakesOver, "recording the promotion; it cannot be undone"))
	p.step(p.statefulSetOf(next), ActionPromote, "", "", passage.Because(CodeTakesOver, "environmentd is ready"))
	p.planTakeover(false)
}

// failLastStep fails the last step with an error that only a change of the spec resolves.
func (p *planner) failLastStep(err error) {
	p.specErr = specError{err}
	p.last().State, p.last().Reason = passage.Failed, passage.Because(v1alpha2.ReasonFailedDeploy, "%v", err)
}

// planCancel removes the next generation of a rollout that timed out. The timeout is recorded first: that write conflicts if
// another process has started the promotion.
func (p *planner) planCancel() {
	reason := passage.Because(v1alpha2.ReasonRolloutTimeout, "%s was not ready to promote within %s", p.Target, p.Materialize.Spec.RolloutRequestTimeout)
	cancel := func() {
		why := reason
		if waited := p.lastProgress(); waited != "" {
			why.Message += lastState + waited
		}
		p.statusStep(ActionCancel, p.Target, p.generationName(p.Materialize.Status.ActiveGeneration), why)
	}
	p.applyGeneration(p.Active())
	if !hasReason(p.Materialize.Status, v1alpha2.ReasonRolloutTimeout) {
		cancel()
		p.removeOthers(reason)
		return
	}
	p.removeOthers(reason)
	cancel()
	p.last().State = passage.Failed
}

// planPromotion plans what follows the commit. It does not depend on the spec any more.
func (p *planner) planPromotion() {
	next := p.Next()
	leads := p.Leader.Status == v1alpha2.LeaderIsLeader || p.serviceSwitched()
	if !leads {
		p.planSharedObjects()
		p.maintainActive()
	}
	p.applyGeneration(next)
	if p.Leader.Status == v1alpha2.LeaderInitializing && p.skipsCatchUp() {
		p.step(p.statefulSetOf(next), ActionSkipCatchup, "", "", passage.Because(CodeForced, "the promotion does not wait for the catch-up"))
	}
	p.step(p.statefulSetOf(next), ActionPromote, "", "", passage.Because(CodeTakesOver, "environmentd is ready"))
	promote := p.last()
	switch {
	case leads:
		promote.State = passage.Done
	case p.Leader.Status == v1alpha2.LeaderUnknown:
		promote.State, promote.Reason = passage.Running, passage.Because(CodeNoAnswer, "%s", p.Leader.Message)
	case p.Leader.Status == v1alpha2.LeaderInitializing:
		promote.State, promote.Reason = passage.Running, passage.Because(CodeNotReady, "environmentd has restarted and is not ready yet")
	case p.Leader.Status == v1alpha2.LeaderPromoting:
		promote.State, promote.Reason = passage.Running, passage.Because(CodeTakesOver, "environmentd is taking over leadership")
	}
	p.planTakeover(leads)
}

// planTakeover plans what follows when the next generation is the leader.
func (p *planner) planTakeover(leads bool) {
	next, active := p.Next(), p.Active()
	service := objects.PublicService(p.Materialize, p.selector(next))
	public := objects.SetOwner(p.Materialize, objects.ToUnstructured(objects.KindService, service))
	from := ""
	if active != nil {
		from = p.generationName(active.Number)
	}
	p.step(objects.Identity(public), ActionSwitch, from, p.generationName(next.Number), passage.Because(CodeTakesOver, "Service must select the pods of the new leader"))
	if leads {
		p.desired[objects.Identity(public)] = public
		if have := p.SharedObjects[objects.Identity(public)]; have != nil && objects.Drift(public, have) == "" {
			p.last().State = passage.Done
		}
	}
	if active != nil {
		p.removeGeneration(active, passage.Because(CodeReplaced, "replaced by generation %d", next.Number))
	}
	p.statusStep(ActionComplete, from, p.generationName(next.Number), passage.Because(CodeTakesOver, "generation %d is the leader", next.Number))
}

// await waits until the pods of a generation are ready.
func (p *planner) await(g *Generation) {
	p.step(p.statefulSetOf(g), ActionAwait, "", "", passage.Because(CodeNotReady, "pods are not ready yet"))
	await := p.last()
	switch set := g.StatefulSet; {
	case !p.matchesSpec(g) || set == nil:
	case g.rolledOut():
		await.State = passage.Done
	default:
		await.State = passage.Running
		await.Progress = FormatPodCount(*g.podCount())
	}
}

// catchUp waits until environmentd of the next generation is ready to promote.
func (p *planner) catchUp() {
	p.step(p.statefulSetOf(p.Next()), ActionCatchUp, "", "", passage.Because(CodeNotReady, "environmentd has not caught up yet"))
	catchUp := p.last()
	switch {
	case p.Leader.Status == v1alpha2.LeaderUnknown:
		catchUp.State, catchUp.Reason = passage.Running, passage.Because(CodeNoAnswer, "%s", p.Leader.Message)
	case p.Leader.Status == v1alpha2.LeaderInitializing && p.skipsCatchUp():
		catchUp.Action, catchUp.Reason = ActionSkipCatchup, passage.Because(CodeForced, "the promotion does not wait for the catch-up")
	case p.Leader.Status == v1alpha2.LeaderInitializing:
		catchUp.State = passage.Running
	case p.Leader.Status != "":
		catchUp.State = passage.Done
	}
}

// approve waits for spec.forcePromote, if the strategy requires it.
func (p *planner) approve() {
	// A forcePromote from before the request does not approve this rollout.
	approved := p.Forced() && p.Underway()
	if p.strategy() != v1alpha2.RolloutManuallyPromote || approved || p.Leader.Status == v1alpha2.LeaderPromoting || p.Leader.Status == v1alpha2.LeaderIsLeader {
		return
	}
	m := p.Materialize
	reason := passage.Because(v1alpha2.ReasonReadyToPromote,
		"to promote it, set spec.forcePromote to %s: `fairlead promote mzs %s -n %s`", p.Hash, m.Name, m.Namespace)
	if p.Underway() && p.ForcePromoteIsStale() {
		reason = passage.Because(v1alpha2.ReasonReadyToPromote,
			"spec.forcePromote %s is older than the rollout and ignored; to promote it, remove spec.forcePromote and set it again: `fairlead promote mzs %s -n %s`", p.Hash, m.Name, m.Namespace)
	}
	p.step(p.subject(), ActionApprove, "", p.Target, reason)
	if p.Leader.Status == v1alpha2.LeaderReadyToPromote {
		p.last().State = passage.Running
	}
}

// planSharedObjects applies the objects that all generations share, and deletes those that the spec no longer requires.
func (p *planner) planSharedObjects() {
	now := p.activeConfig()
	all, err := objects.Shared(p.Materialize, now)
	if err != nil {
		p.sharedSpecErr = specError{err}
	}
	// The active or the next generation may need any of the existing objects if its spec is unknown.
	unknown := p.Active() != nil && now.Spec == nil || p.Promoting() && now.Next == nil
	wanted := map[passage.Object]bool{}
	for _, object := range all {
		wanted[objects.Identity(object)] = true
		have := p.existing(object)
		switch kind := object.GroupVersionKind(); {
		case p.keepsInherited(object):
			continue
		case kind == objects.KindDeployment:
			object = p.keepPods(object, have)
		case have != nil && kind == objects.KindRoleBinding && (unknown || now.AccountRefused):
			object = objects.KeepSubjects(object, have)
		}
		p.apply(ActionApplyShared, object, have)
	}
	if unknown || err != nil || now.AccountRefused {
		return
	}
	for _, key := range slices.SortedFunc(maps.Keys(p.SharedObjects), compareObjects) {
		if !wanted[key] {
			p.deleteObject(p.SharedObjects[key], ActionDeleteShared, passage.Because(CodeNotAsked, "the spec no longer requires the object"))
		}
	}
}

// maintainActive applies the objects of the active generation without blocking the promotion, unless it was stopped to make
// room. One without a record may have been removed in part already, after the promotion.
func (p *planner) maintainActive() {
	active := p.Active()
	stopped := active != nil && active.StatefulSet == nil && p.strategy() == v1alpha2.RolloutImmediatelyPromoteCausingDowntime
	if active != nil && active.Record != nil && !stopped {
		p.applyObjects(ActionApplyShared, active)
	}
}

// applyGeneration creates missing objects of a generation, and corrects drift.
func (p *planner) applyGeneration(g *Generation) { p.applyObjects(ActionApply, g) }

func (p *planner) applyObjects(action passage.Action, g *Generation) {
	if g == nil {
		return
	}
	if !p.Promoting() && g.Number == p.Next().Number && !p.matchesSpec(g) {
		// The generation of another spec is removed by then.
		g = &Generation{Number: g.Number, Hash: p.Hash}
	}
	if g.Backup != nil && g.Record == nil && (g.StatefulSet == nil || !g.StatefulSet.DeletionTimestamp.IsZero()) {
		p.restoreBackup(action, g)
		return
	}
	if g.Foreign {
		return
	}
	record := p.recordOf(g)
	if record == nil {
		return
	}
	for _, object := range objects.ForGeneration(p.Materialize, g.Number, record, g.Record != nil) {
		p.apply(action, object, g.find(objects.Identity(object)))
	}
}

// recordOf is the record of a generation, or one made from the spec if the generation must have been created from it. It is
// nil if that is unknown; its objects then stay as they are.
func (p *planner) recordOf(g *Generation) *objects.Record {
	was := g.Hash
	switch {
	case g.Record != nil:
		return g.Record
	case g.Number == p.Materialize.Status.ActiveGeneration:
		was = p.Completed()
	case p.Promoting() && g.StatefulSet == nil:
		// Nothing is left of the generation being promoted. None of its pods can become the leader any more, so the current
		// spec replaces it.
		was = p.Hash
	case was == "" && p.Promoting():
		was = p.Requested()
	}
	if was != p.Hash {
		return nil
	}
	if was != p.Completed() {
		if err := p.validateSpec(); err != nil {
			p.specErr = specError{err}
			return nil
		}
	}
	record := objects.NewRecord(p.Materialize, p.Hash, g.Number)
	if g.StatefulSet == nil {
		return record
	}
	set := objects.SetOwner(p.Materialize, record.StatefulSet.DeepCopy())
	if g.StatefulSet.Annotations[v1alpha2.AnnotationApplied] != set.GetAnnotations()[v1alpha2.AnnotationApplied] {
		// Another version of Fairlead created it differently. To apply it would restart its pods.
		return nil
	}
	return record
}

// stopGeneration deletes the StatefulSet of a generation, and keeps the record from which it can be created again.
func (p *planner) stopGeneration(g *Generation) {
	if g == nil || g.StatefulSet == nil {
		return
	}
	if g.Foreign {
		backup := objects.NewStatefulSetBackup(p.Materialize, g.Number, g.unlabelledStatefulSet())
		p.apply(ActionApply, backup, g.find(objects.Identity(backup)))
	}
	p.step(p.statefulSetOf(g), ActionRemove, "", "", passage.Because(CodeDowntime, "strategy %s stops the active generation before the next one starts",
		v1alpha2.RolloutImmediatelyPromoteCausingDowntime))
	p.markDeleting(g.StatefulSet)
}

// restoreBackup creates the StatefulSet of a foreign generation again, as it was, without taking ownership.
func (p *planner) restoreBackup(action passage.Action, g *Generation) {
	object := objects.Identity(g.Backup)
	p.desired[object] = g.Backup
	p.step(object, action, "", "", passage.Because(CodeMissing, "was stopped to make room for the next generation, and is active again"))
	if g.StatefulSet != nil {
		p.markDeleting(g.StatefulSet)
	}
}

// removeOthers deletes every generation but the active one and those given.
func (p *planner) removeOthers(reason passage.Reason, keep ...int64) {
	keep = append(keep, p.Materialize.Status.ActiveGeneration)
	for _, number := range slices.Sorted(maps.Keys(p.Generations)) {
		if !slices.Contains(keep, number) {
			p.removeGeneration(p.Generations[number], reason)
		}
	}
}

// removeGeneration deletes all objects of a generation.
func (p *planner) removeGeneration(g *Generation, reason passage.Reason) {
	for _, object := range slices.SortedFunc(slices.Values(slices.Concat(g.Objects, g.Unlabelled)), func(a, b *unstructured.Unstructured) int {
		return compareObjects(objects.Identity(a), objects.Identity(b))
	}) {
		if !p.hasStep(ActionRemove, objects.Identity(object)) {
			p.deleteObject(object, ActionRemove, reason)
		}
	}
}
