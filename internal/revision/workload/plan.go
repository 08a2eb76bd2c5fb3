package workload

import (
	"cmp"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// What a step can be.
const (
	// ActionRelabel changes the label by which a namespace, or the pods of a Deployment, choose their revision.
	ActionRelabel passage.Action = "relabel"
	// ActionRestart replaces pods whose labels select the target while they run on another revision.
	ActionRestart passage.Action = "restart"
	// ActionStay leaves a workload on a revision other than the target.
	ActionStay passage.Action = "stay"
)

// Plan decides what to do about the workloads of an Istio. Namespaces come first, then Deployments, and last the
// workloads that are not moved and keep an old revision in use.
func Plan(o Observed, now time.Time) passage.Plan {
	plan, _, _ := newPlanner(o, now).plan()
	return plan
}

// decision is what to start next, and what to record about the moves that were started before.
type decision struct {
	passage.Decision
	// endedMoves are the moves that have ended and are not recorded yet.
	endedMoves []endedMove
	// toOtherRevision counts the moves to another revision that are still underway.
	toOtherRevision int
	// deadline is when the passage of time changes the state of a workload; zero if none is underway.
	deadline time.Time
}

// endedMove is a Deployment whose move has ended, and the mark that says so.
type endedMove struct {
	*appsv1.Deployment
	mark Mark
}

func decide(o Observed, now time.Time) decision {
	p := newPlanner(o, now)
	plan, ended, deadline := p.plan()
	return decision{passage.Next(plan, o.Batching(), now), ended, len(p.toOtherRevision), deadline}
}

func (p planner) plan() (plan passage.Plan, ended []endedMove, deadline time.Time) {
	plan = passage.Plan{
		Passage: v1.PassageMigration,
		Subject: passage.Object{APIVersion: v1.GroupVersion.String(), Kind: v1.IstioKind, Name: p.Istio.Name},
		Target:  p.Target.Name,
		Moves:   kindDeployment,
		Hold:    passage.FirstHold(p, gates...),
		Steps:   []passage.Step{},
	}
	deadline = p.deadline
	if p.Target.Name == "" {
		return plan, nil, deadline
	}
	ended = p.endedMoves
	plan.Steps = slices.Grow(append(plan.Steps, p.namespaceSteps()...), len(p.Inventory.Deployments))
	for i, d := range p.Inventory.Deployments {
		step, result := p.deploymentStep(d, p.marks[i])
		if step != nil {
			plan.Steps = append(plan.Steps, *step)
		}
		late := p.unwrittenMark(d, p.marks[i])
		switch _, refused := p.Refused[d.UID]; {
		case refused:
		case result.unwritten != nil:
			ended = append(ended, p.newEndedMove(d, *result.unwritten))
		case late != nil && result.state == late.ended():
			ended = append(ended, endedMove{d, *late})
		}
		deadline = earliest(deadline, result.deadline)
	}
	plan.Steps = append(plan.Steps, p.unmanagedWorkloads()...)
	return plan, ended, deadline
}

// planner has what is the same for all workloads of one plan.
type planner struct {
	Observed
	now      time.Time
	matches  map[string]nameMatch
	timeout  time.Duration
	runStart time.Time
	retry    string
	// marks are those of the Deployments of the inventory, in the same order; nil for marks of another Istio.
	marks []*Mark
	// nextBatchStart is when the last move of any later batch of this run was started, by batch number.
	nextBatchStart map[int]time.Time
	// toOtherRevision are the Deployments that are moving to another revision, the last of them to otherRevision; deadline
	// is when the passage of time changes that.
	toOtherRevision []*appsv1.Deployment
	// endedMoves are the moves to another revision that have failed and are not recorded yet.
	endedMoves    []endedMove
	otherRevision string
	deadline      time.Time
}

func newPlanner(o Observed, now time.Time) planner {
	settings, err := o.settings()
	if err != nil {
		settings.ReadinessTimeout = v1.DefaultReadinessTimeout
	}
	p := planner{
		Observed: o, now: now, matches: o.matchNames(),
		timeout: settings.ReadinessTimeout, runStart: o.lastRunStart(), retry: o.retryRequest(),
		marks: o.marks.marksOf(o.Inventory.Deployments), nextBatchStart: map[int]time.Time{},
	}
	starts := map[int]time.Time{}
	for i, d := range o.Inventory.Deployments {
		mark := p.marks[i]
		if unwritten := p.unwrittenMark(d, mark); unwritten != nil {
			mark, p.marks[i] = unwritten, unwritten
		}
		if mark == nil || mark.Istio != o.Istio.Name || d.DeletionTimestamp != nil {
			p.marks[i] = nil
			continue
		}
		switch {
		case mark.Target != o.Target.Name:
			result := p.outcomeOf(d, *mark)
			// A rollout long after the move is not part of the move.
			if given := mark.Started.Add(timeoutOf(d, p.timeout) + podsLag); result.state == passage.Running && now.Before(given) {
				p.toOtherRevision, p.otherRevision = append(p.toOtherRevision, d), mark.Target
				p.deadline = earliest(p.deadline, earliest(result.deadline, given))
			} else if _, refused := o.Refused[d.UID]; result.state == passage.Failed && result.unwritten != nil && !refused &&
				staysOnOldRevision(d, p.podsOf(d), *mark) {
				// That revision may become the target again.
				p.endedMoves = append(p.endedMoves, p.newEndedMove(d, *result.unwritten))
			}
		case mark.Run.Equal(p.runStart) && !p.isRetried(*mark):
			starts[mark.Batch] = latest(starts[mark.Batch], mark.Started)
		}
	}
	var last time.Time
	for _, batch := range slices.Backward(slices.Sorted(maps.Keys(starts))) {
		p.nextBatchStart[batch] = last
		last = latest(last, starts[batch])
	}
	return p
}

// unwrittenMark is the mark of an ended move that could not be written, or nil.
func (p planner) unwrittenMark(d *appsv1.Deployment, mark *Mark) *Mark {
	if unwritten, found := p.Unwritten[d.UID]; found && mark != nil && unwritten.Started.Equal(mark.Started) {
		return &unwritten
	}
	return nil
}

// newEndedMove records the last retry request with the move: only later requests retry a failed move.
func (p planner) newEndedMove(d *appsv1.Deployment, mark Mark) endedMove {
	mark.Retry = p.retry
	return endedMove{d, mark}
}

func (p planner) outcomeOf(d *appsv1.Deployment, mark Mark) outcome {
	return outcomeOf(d, p.podsOf(d), mark, timeoutOf(d, p.timeout), p.now)
}

func (p planner) podsOf(d *appsv1.Deployment) inventory.Pods {
	return p.Inventory.Pods[inventory.DeploymentOf(d)]
}

// namespaceSteps are the steps of phase one, which restart nothing.
func (p planner) namespaceSteps() []passage.Step {
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
		if why, refused := p.Refused[p.Inventory.Namespaces[name].UID]; refused {
			step.State, step.Reason, step.EndedAt = passage.Failed, why.Reason, why.At
		} else if why := p.unreportedReason(); why != nil {
			step.State, step.Reason = passage.Failed, *why
		}
		steps = append(steps, step)
	}
	return steps
}

// deploymentStep is the step of a Deployment, or nil if it has nothing to do with this migration, and the outcome if it
// was moved before.
func (p planner) deploymentStep(d *appsv1.Deployment, mark *Mark) (*passage.Step, outcome) {
	if d.DeletionTimestamp != nil {
		return nil, outcome{}
	}
	if mark == nil || mark.Target != p.Target.Name {
		return p.unstartedStep(d, nil), outcome{}
	}
	result := p.outcomeOf(d, *mark)
	switch {
	case !mark.Failed.IsZero():
		if result.state == passage.Failed && p.isRetried(*mark) {
			return p.unstartedStep(d, mark), outcome{}
		}
	case !mark.Run.Equal(p.runStart):
		if result.state == passage.Done {
			return nil, outcome{}
		}
		if result.state == passage.Failed || mark.Batch == 0 {
			return p.unstartedStep(d, nil), outcome{}
		}
	case p.isOver(*mark) && result.hasWrongRevision():
		// The rollback may be intended.
		if again := p.unstartedStep(d, nil); again == nil || again.State != passage.Pending {
			return again, outcome{}
		}
	case p.isOver(*mark) && result.state == passage.Failed && staysOnOldRevision(d, p.podsOf(d), *mark):
		// The failure could not be recorded before.
	case p.isOver(*mark):
		ended := p.nextBatchStart[mark.Batch]
		if result.state == passage.Done && result.unwritten == nil {
			ended = earliest(ended, result.ended)
		}
		result = outcome{state: passage.Done, ended: ended}
	}
	return p.startedStep(d, result, *mark), result
}

// isOver tells whether a move of this run that has not failed is done. The next batch opens when those before it have
// settled, and a migration ends when all of it has: a later rollout is not part of it. Times count as well, because the number
// of a batch is reused when all of its members are retried.
func (p planner) isOver(mark Mark) bool {
	return mark.Batch == 0 || mark.Started.Before(p.nextBatchStart[mark.Batch]) || !p.isRunning()
}

// isRetried tells whether a retry was requested after a move that failed was made. Requests are compared, not times: the
// client may have another clock.
func (p planner) isRetried(mark Mark) bool {
	return !mark.Failed.IsZero() && p.retry != "" && mark.Retry != p.retry
}

// startedStep is the step of a Deployment that was moved before. One that is done counts only in its own migration; one that
// has failed stays failed in those that follow.
func (p planner) startedStep(d *appsv1.Deployment, result outcome, mark Mark) *passage.Step {
	step := p.newStep(d)
	step.Action, step.From, step.State, step.Progress = mark.Action, mark.From, result.state, result.progress
	step.StartedAt, step.EndedAt = mark.Started, result.ended
	step.Reason = passage.Because(v1.ReasonWorkloadRestarting, "its pods are being replaced")
	step.Disruptive = mark.Batch > 0
	if w, err := overridesOf(d); err == nil {
		step.Priority = w.priority
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

func (p planner) newStep(d *appsv1.Deployment) *passage.Step {
	return &passage.Step{Object: deploymentObject(d.Namespace, d.Name), To: p.Target.Name}
}

// unmanagedWorkloads are the workloads of other kinds that run on an old revision.
func (p planner) unmanagedWorkloads() []passage.Step {
	var steps []passage.Step
	for workload, pods := range p.Inventory.Pods {
		if workload.Kind == kindDeployment {
			continue
		}
		old := p.outdatedRevisions(pods)
		if len(old) == 0 {
			continue
		}
		how := "restart it when its pods' label names " + p.Target.Name
		choice := usage.Choose(p.Inventory.Namespaces[workload.Namespace].Labels, nil)
		switch means := p.matchOf(choice.Name); {
		case p.leadsToTarget(choice):
			how = "its next restart picks up the revision"
		case choice.OfNamespace && means.description != "":
			how = "its namespace selects " + means.description
		}
		steps = append(steps, passage.Step{
			Object: passage.Object{APIVersion: workload.APIVersion, Kind: workload.Kind, Namespace: workload.Namespace, Name: workload.Name},
			Action: ActionStay, From: joinRevisions(old), To: p.Target.Name, State: passage.Skipped,
			Reason: passage.Because(v1.ReasonKindNotMoved, "%s is not restarted by Fairlead; %s", workload.Kind, how),
		})
	}
	slices.SortFunc(steps, func(a, b passage.Step) int {
		return cmp.Or(
			cmp.Compare(a.Object.Namespace, b.Object.Namespace),
			cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Name, b.Object.Name),
		)
	})
	return steps
}
