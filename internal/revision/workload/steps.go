package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// namespaceSteps are the steps of phase one, which restart nothing.
func (p *planner) namespaceSteps() []passage.Step {
	var steps []passage.Step
	for _, name := range slices.Sorted(maps.Keys(p.Inventory.Namespaces)) {
		choice := usage.Choose(p.Inventory.Namespaces[name].Labels, nil)
		if choice.Name == "" || p.matchOf(choice.Name).revisionMatch != outdated {
			continue
		}
		step := passage.Step{
			Object: passage.Object{APIVersion: "v1", Kind: kindNamespace, Name: name},
			Action: ActionRelabel, From: choice.Name, To: p.Target.Name, State: passage.Pending,
			Reason: passage.Because(v1.ReasonNamesOldRevision, "selected by label %s", choice.Label),
		}
		if skip, invalid := p.skipsNamespace(name); skip {
			step.State, step.Action = passage.Skipped, ActionStay
			step.Reason = passage.Because(v1.ReasonSkippedByUser, "annotation %s is set; its label and its workloads are left alone", v1.AnnotationSkipMigration)
		} else if invalid != nil {
			step.State, step.Reason = passage.Failed, *invalid
		} else if why, refused := p.Refused[p.Inventory.Namespaces[name].UID]; refused {
			step.State, step.Reason, step.EndedAt = passage.Failed, why.Reason, why.At
		} else if why := p.unreportedReason(); why != nil {
			step.State, step.Reason = passage.Failed, *why
		}
		steps = append(steps, step)
	}
	return steps
}

// workloadStep is the step of a workload, or nil if it has nothing to do with this migration, and the outcome if it was
// moved before.
func (p *planner) workloadStep(seen *inventory.Workload, mark *Mark) (*passage.Step, outcome) {
	if seen.DeletionTimestamp != nil {
		return nil, outcome{}
	}
	switch {
	case p.abandoned[seen.UID]:
		return p.disturbedStep(seen, mark.Target), outcome{}
	case mark == nil || mark.Target != p.Target.Name:
		return p.unstartedStep(seen, nil), outcome{}
	}
	result := p.outcomeOf(seen, *mark)
	if result.state != passage.Done && waitsForUser(seen) {
		if why := p.manualReason(p.workload(seen)); why != nil {
			step := p.newStep(seen)
			step.State, step.Action, step.From, step.Reason = passage.Skipped, ActionStay, mark.From, *why
			return step, outcome{}
		}
	}
	switch {
	case mark.Action == ActionContinue && result.state == passage.Running && mark.Run.Equal(p.runStart) &&
		len(otherRevisions(p.podsOf(seen), p.Target.Name)) > 0:
		// A pod was created on the abandoned revision while labels changed.
		return p.disturbedStep(seen, mark.From), outcome{}
	case !mark.Failed.IsZero():
		if result.state == passage.Failed && p.isRetried(*mark) {
			return p.unstartedStep(seen, mark), outcome{}
		}
	case !mark.Run.Equal(p.runStart):
		if result.state == passage.Done {
			return nil, outcome{}
		}
		if result.state == passage.Failed || mark.Batch == 0 {
			return p.unstartedStep(seen, nil), outcome{}
		}
	case p.isOver(*mark) && result.hasWrongRevision():
		// The rollback may be intended.
		if again := p.unstartedStep(seen, nil); again == nil || again.State != passage.Pending {
			return again, outcome{}
		}
	case p.isOver(*mark) && result.state == passage.Failed && staysOnOldRevision(seen, p.podsOf(seen), *mark):
		// The failure could not be recorded before.
	case p.isOver(*mark):
		ended := p.nextBatchStart[mark.Batch]
		if result.state == passage.Done && result.unwritten == nil {
			ended = earliest(ended, result.ended)
		}
		result = outcome{state: passage.Done, ended: ended}
	}
	return p.startedStep(seen, result, *mark), result
}

// isOver tells whether a move of this run that has not failed is done. The next batch opens when those before it have
// settled, and a migration ends when all of it has: a later rollout is not part of it. Times count as well, because the number
// of a batch is reused when all of its members are retried.
func (p *planner) isOver(mark Mark) bool {
	return mark.Batch == 0 || mark.Overdue.IsZero() && mark.Started.Before(p.nextBatchStart[mark.Batch]) || !p.isRunning()
}

// isRetried tells whether a retry was requested after a move that failed was made. Requests are compared, not times: the
// client may have another clock.
func (p *planner) isRetried(mark Mark) bool {
	return !mark.Failed.IsZero() && p.retry != "" && mark.Retry != p.retry
}

// startedStep is the step of a workload that was moved before. One that is done counts only in its own migration; one that
// has failed stays failed in those that follow.
func (p *planner) startedStep(seen *inventory.Workload, result outcome, mark Mark) *passage.Step {
	step := p.newStep(seen)
	step.Action, step.From, step.State, step.Progress = mark.Action, mark.From, result.state, result.progress
	step.StartedAt, step.EndedAt, step.OverdueSince = mark.Started, result.ended, result.overdue
	step.Reason = passage.Because(v1.ReasonWorkloadRestarting, "its pods are being replaced")
	if !result.overdue.IsZero() {
		step.Reason = p.timeouts.overdueReason(seen, p.Istio.Name)
	}
	p.addCap(step, seen)
	step.Disruptive = mark.Batch > 0
	if asked, err := overridesOf(seen); err == nil {
		step.Priority = asked.priority
	}
	if mark.Run.Equal(p.runStart) {
		step.Batch = mark.Batch
	}
	switch result.state {
	case passage.Done:
		if !mark.Run.Equal(p.runStart) {
			return nil
		}
		step.Reason = passage.Because(v1.ReasonRunsOnTarget, "its pods run on %s", p.Target.Name)
	case passage.Failed:
		step.Reason = *result.reason
	}
	return step
}

func (p *planner) newStep(seen *inventory.Workload) *passage.Step {
	return &passage.Step{Object: objectOf(seen), To: p.Target.Name}
}

// workload is one that has not been moved, with its pods and its labels evaluated.
type workload struct {
	*inventory.Workload
	pods inventory.Pods
	// old are the outdated revisions that its pods run.
	old []string
	// choice is the revision or tag that its labels and those of its namespace select, and match how it relates to the target.
	choice usage.Choice
	match  nameMatch
	// ownLabel is set when its own pod template names an outdated revision.
	ownLabel bool
	// fixed is the revision that its own pod template names while injection is off, as that of a gateway does; by is how.
	fixed, by string
}

// unstartedStep is the step of a workload that was not moved yet, or nil if it is not part of this migration. With the mark
// of a failed move, the step retries it.
func (p *planner) unstartedStep(seen *inventory.Workload, failed *Mark) *passage.Step {
	w, step := p.workload(seen), p.newStep(seen)
	step.State, step.Action, step.From = passage.Pending, ActionRestart, joinRevisions(w.old)
	switch {
	case failed != nil:
		step.From = failed.From
		step.Reason = passage.Because(v1.ReasonRetried, "retried after it failed: %s", failed.Reason.Message)
	case p.isBehind(w):
		step.Reason = p.whyBehind(w)
	case p.wasMovedByOthers(w):
		step.State = passage.Done
		step.Reason = passage.Because(v1.ReasonRunsOnTarget, "restarted by another client on %s", p.Target.Name)
		return step
	case p.hasLostSidecars(w):
		step.State, step.Action, step.From = passage.Skipped, ActionStay, "no sidecar"
		step.Reason = passage.Because(v1.ReasonNoSidecar, "some pods have no sidecar; the next restart injects that of %s", p.Target.Name)
		return step
	default:
		return nil
	}
	if step.From == "" && w.ownLabel {
		step.From = seen.PodLabels[v1.LabelRevision]
	} else if step.From == "" {
		step.From = cmp.Or(w.choice.Name, w.fixed)
	}
	if p.rewritesLabel(w) {
		step.Action = ActionRelabel
	}
	// A workload without replicas has no pods to disrupt.
	step.Disruptive = seen.Replicas > 0
	if failed != nil {
		return p.withOverrides(step, w)
	}
	return p.withOverrides(step, w,
		stateReason{passage.Skipped, p.noRestartReason(w)}, stateReason{passage.Done, p.onTargetReason(w)})
}

// disturbedStep is the step of a workload that was on its way to another revision when the target changed. It is
// restarted only if its rollout does not lead to the target.
func (p *planner) disturbedStep(seen *inventory.Workload, abandoned string) *passage.Step {
	w, step := p.workload(seen), p.newStep(seen)
	step.State, step.Action, step.From = passage.Pending, ActionContinue, cmp.Or(joinRevisions(w.old), abandoned)
	step.Disruptive, step.Disturbed = true, true
	step.Reason = passage.Because(v1.ReasonTargetChanged, "was being moved to %s when the target changed", abandoned)
	switch {
	case p.rewritesLabel(w):
		step.Action = ActionRelabel
	case len(otherRevisions(w.pods, p.Target.Name)) > 0:
		step.Action = ActionRestart
	}
	return p.withOverrides(step, w)
}

// withOverrides is a pending step with the settings of its workload, and with the first state that there is a reason for.
func (p *planner) withOverrides(step *passage.Step, w workload, more ...stateReason) *passage.Step {
	asked, unreadable := overridesOf(w.Workload)
	step.Priority = asked.priority
	stateReasons := append(make([]stateReason, 0, 7),
		stateReason{passage.Skipped, p.skipReason(w, asked)},
		stateReason{passage.Failed, unreadable},
		stateReason{passage.Failed, p.refusalReason(w)})
	stateReasons = append(stateReasons, more...)
	stateReasons = append(stateReasons, stateReason{passage.Skipped, p.manualReason(w)}, stateReason{passage.Failed, p.unreportedReason()})
	for _, v := range stateReasons {
		if v.why != nil {
			step.State, step.Reason = v.state, *v.why
			switch step.State {
			case passage.Skipped:
				step.Action = ActionStay
			case passage.Failed:
				step.EndedAt = p.Refused[w.UID].At
			}
			p.addTagHold(w)
			return step
		}
	}
	p.addCap(step, w.Workload)
	if why := w.match.notMoved; why != nil {
		// A restart would come up on the old revision.
		step.Held, step.Reason = true, *why
		p.addTagHold(w)
	}
	return step
}

// addTagHold notes that a tag keeps a workload where it is. A tag that only takes a moment is not worth a note.
func (p *planner) addTagHold(w workload) {
	switch {
	case w.match.failing:
		p.tagHolds[w.choice.Name] = w.match.notMoved.Message + "; workloads that use the tag wait"
	case w.match.revisionMatch == held:
		p.tagHolds[w.choice.Name] = fmt.Sprintf("%s; workloads that use the tag are not moved", w.match.description)
	}
}

// addCap adds to the reason of a step that its workload does not get all the time that it asks for.
func (p *planner) addCap(step *passage.Step, seen *inventory.Workload) {
	if capped := p.timeouts.capReason(seen); capped != nil {
		step.Reason.Message += "; " + capped.Message
	}
}

// stateReason is the state of a step if there is a reason for it.
type stateReason struct {
	state passage.State
	why   *passage.Reason
}

func (p *planner) workload(seen *inventory.Workload) workload {
	pods := p.podsOf(seen)
	w := workload{Workload: seen, pods: pods, old: p.outdatedRevisions(pods)}
	if seen.PodAnnotations[v1.LabelSidecarInject] != "false" {
		w.choice = usage.Choose(p.Inventory.Namespaces[seen.Namespace].Labels, seen.PodLabels)
	}
	if w.choice.Name == "" {
		w.fixed, w.by = fixedRevision(seen, len(w.old) > 0)
	}
	w.match = p.matchOf(w.choice.Name)
	w.ownLabel = w.choice.Name != "" && p.matchOf(seen.PodLabels[v1.LabelRevision]).revisionMatch == outdated
	return w
}

// fixedRevision is the revision that a pod template names itself, which no restart changes, and how. The label alone, without
// pods that have a proxy, is that of a control plane.
func fixedRevision(w *inventory.Workload, proxies bool) (revision, by string) {
	off := w.PodLabels[v1.LabelSidecarInject] == "false" || w.PodAnnotations[v1.LabelSidecarInject] == "false"
	switch {
	case w.PodAnnotations[v1.AnnotationRevision] != "":
		return w.PodAnnotations[v1.AnnotationRevision], "annotation " + v1.AnnotationRevision
	case off && w.PodLabels[v1.LabelRevision] != "" && (proxies || w.Gateway != ""):
		return w.PodLabels[v1.LabelRevision], "label " + v1.LabelRevision
	}
	return "", ""
}

// outdatedRevisions are the revisions of the same Istio, other than the target, that pods run.
func (p *planner) outdatedRevisions(pods inventory.Pods) []string {
	var old []string
	for revision := range pods {
		if p.matchOf(revision).revisionMatch == outdated {
			old = append(old, revision)
		}
	}
	slices.Sort(old)
	return old
}

func joinRevisions(revisions []string) string { return strings.Join(revisions, ", ") }

// isBehind tells whether pods run, or labels name, an outdated revision.
func (p *planner) isBehind(w workload) bool {
	return len(w.old) > 0 || w.match.revisionMatch == outdated || w.ownLabel || p.matchOf(w.fixed).revisionMatch == outdated
}

// rewritesLabel tells whether the pods have a label of their own that is to name the target.
func (p *planner) rewritesLabel(w workload) bool { return w.ownLabel || p.podsChooseOutdated(w) }

// podsChooseOutdated tells whether the label of the pods selects an outdated revision. A label that the namespace overrides
// is no reason to restart them.
func (p *planner) podsChooseOutdated(w workload) bool {
	return w.match.revisionMatch == outdated && !w.choice.OfNamespace
}

// leadsToTarget tells whether a choice in a namespace leads to the target, now or once the labels of namespaces have been
// changed.
func (p *planner) leadsToTarget(choice usage.Choice, namespace string) bool {
	switch p.matchOf(choice.Name).revisionMatch {
	case current, following:
		return true
	case outdated:
		skip, invalid := p.skipsNamespace(namespace)
		return choice.OfNamespace && !skip && invalid == nil
	}
	return false
}

// whyBehind says how the workload selects its old revision.
func (p *planner) whyBehind(w workload) passage.Reason {
	code := v1.ReasonOnOldRevision
	if len(w.old) == 0 {
		code = v1.ReasonNamesOldRevision
	}
	switch {
	case p.rewritesLabel(w):
		return passage.Because(code, "selected by the pod label")
	case w.match.revisionMatch == following:
		return passage.Because(code, "through IstioRevisionTag %s", w.choice.Name)
	case w.match.revisionMatch == outdated:
		return passage.Because(code, "selected by the namespace label")
	}
	return passage.Because(code, "its pods still run the old revision")
}

// skipReason is why a workload that is behind is skipped, or nil.
func (p *planner) skipReason(w workload, asked overrides) *passage.Reason {
	next := ""
	if p.leadsToTarget(w.choice, w.Namespace) && !w.ownLabel {
		next = "; its next restart picks up the revision"
	}
	switch skip, _ := p.skipsNamespace(w.Namespace); {
	case skip:
		return passage.NewReason(v1.ReasonSkippedByUser, "annotation %s of Namespace %s is set%s", v1.AnnotationSkipMigration, w.Namespace, p.warnOfNewPods(w))
	case asked.skip:
		return passage.NewReason(v1.ReasonSkippedByUser, "annotation %s is set%s", v1.AnnotationSkipMigration, p.warnOfNewPods(w))
	case w.Paused:
		return passage.NewReason(v1.ReasonDeploymentPaused, "spec.paused is set%s", next)
	case w.fixed != "" && w.Gateway != "":
		return passage.NewReason(v1.ReasonNamesRevision, "its pod template names %s by %s, and a restart does not move it; set label %s of Gateway %s/%s to %s",
			w.fixed, w.by, v1.LabelRevision, w.Namespace, w.Gateway, p.Target.Name)
	case w.fixed != "":
		return passage.NewReason(v1.ReasonNamesRevision, "its pod template names %s by %s, with injection off, and a restart does not move it; set %s to %s",
			w.fixed, w.by, w.by, p.Target.Name)
	case w.choice.Name == "":
		return passage.NewReason(v1.ReasonInjectionOff, "injection is disabled; its pods keep the sidecar of %s until a restart",
			joinRevisions(w.old))
	}
	switch w.match.revisionMatch {
	case pinned:
		return passage.NewReason(v1.ReasonPinnedByTag, "pinned by %s", w.match.description)
	case held:
		return passage.NewReason(v1.ReasonTagNotMoved, "uses %s", w.match.description)
	case foreign:
		return passage.NewReason(v1.ReasonChoosesAnother, "label %s selects %s", w.choice.Label, w.match.description)
	case unknown:
		return passage.NewReason(v1.ReasonUnknownRevision,
			"label %s names %s, which is neither a revision nor a tag; correct the label", w.choice.Label, w.choice.Name)
	}
	return nil
}

// manualReason is why the controller of a workload replaces none of its pods, or not all of them; nil if it does.
func (p *planner) manualReason(w workload) *passage.Reason {
	switch relabel := p.rewritesLabel(w); {
	case w.Replicas == 0:
		return nil
	case w.OnDelete && relabel:
		return passage.NewReason(v1.ReasonOnDelete, "spec.updateStrategy.type is OnDelete; set label %s of its pod template to %s, "+
			"and delete its pods", v1.LabelRevision, p.Target.Name)
	case w.OnDelete:
		return passage.NewReason(v1.ReasonOnDelete, "spec.updateStrategy.type is OnDelete; delete its pods, and new ones start on %s", p.Target.Name)
	case w.Partition > 0:
		return passage.NewReason(v1.ReasonPartition, "spec.updateStrategy.rollingUpdate.partition is %d, and keeps pods below that number "+
			"from being replaced; set it to 0", w.Partition)
	}
	return nil
}

// warnOfNewPods is the warning that new pods of a skipped workload start on the target.
func (p *planner) warnOfNewPods(w workload) string {
	if !p.leadsToTarget(w.choice, w.Namespace) || w.ownLabel {
		return ""
	}
	return ", but new pods of it start on the target revision"
}

// refusalReason is why the change of a workload was refused, or nil.
func (p *planner) refusalReason(w workload) *passage.Reason {
	if why, found := p.Refused[w.UID]; found {
		return passage.NewReason(why.Code, "%s", why.Message)
	}
	if _, invalid := p.skipsNamespace(w.Namespace); invalid != nil {
		return invalid
	}
	if why, found := p.Refused[p.Inventory.Namespaces[w.Namespace].UID]; found && w.match.revisionMatch == outdated && w.choice.OfNamespace {
		return passage.NewReason(v1.ReasonNamespaceRefused, "the label of namespace %s could not be changed: %s",
			w.Namespace, why.Message)
	}
	return nil
}

// noRestartReason is why a workload needs no restart to move, or nil.
func (p *planner) noRestartReason(w workload) *passage.Reason {
	if p.rewritesLabel(w) || len(w.old) > 0 && w.Replicas > 0 || w.pods[p.Target.Name] > 0 {
		return nil
	}
	if len(w.pods) == 0 || w.Replicas == 0 {
		return passage.NewReason(v1.ReasonNoPods, "it has no pods; new pods start on %s", p.Target.Name)
	}
	return passage.NewReason(v1.ReasonNoSidecar, "its pods have no sidecar; the next restart injects that of %s", p.Target.Name)
}

// hasLostSidecars tells whether a workload that was moved before has pods that were created while its labels named no
// revision. Its mark proves that it belongs to the mesh.
func (p *planner) hasLostSidecars(w workload) bool {
	if w.pods[""] == 0 || !p.leadsToTarget(w.choice, w.Namespace) {
		return false
	}
	mark := markOf(w.Workload)
	return mark != nil && mark.Istio == p.Istio.Name
}

// onTargetReason is set for a workload whose pods run on the target already.
func (p *planner) onTargetReason(w workload) *passage.Reason {
	if p.podsChooseOutdated(w) || len(otherRevisions(w.pods, p.Target.Name)) > 0 || w.pods[p.Target.Name] == 0 {
		return nil
	}
	return passage.NewReason(v1.ReasonRunsOnTarget, "its pods already run on %s", p.Target.Name)
}

// wasMovedByOthers tells whether a workload that existed when the migration began was restarted on the target by another
// client. It stays counted as migrated.
func (p *planner) wasMovedByOthers(w workload) bool {
	if p.runStart.IsZero() || !w.CreationTimestamp.Time.Before(p.runStart) || len(otherRevisions(w.pods, p.Target.Name)) > 0 ||
		w.pods[p.Target.Name] == 0 || !p.leadsToTarget(w.choice, w.Namespace) {
		return false
	}
	rolled, ended := rolledOut(w.Workload, p.runStart, w.Generation)
	over := p.Istio.Status.WorkloadMigration.CompletionTime
	return rolled && !ended.IsZero() && (over == nil || !ended.After(over.Add(time.Second)))
}
