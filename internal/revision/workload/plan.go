package workload

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// What a step can be.
const (
	// ActionRelabel changes the label by which a namespace, or the pods of a workload, choose their revision.
	ActionRelabel passage.Action = "relabel"
	// ActionRestart replaces pods whose labels select the target while they run on another revision.
	ActionRestart passage.Action = "restart"
	// ActionContinue follows a rollout that is underway already and leads to the target without a restart.
	ActionContinue passage.Action = "continue"
	// ActionStay leaves a workload on a revision other than the target.
	ActionStay passage.Action = "stay"
)

// Plan decides what to do about the workloads of an Istio. Namespaces come first, then those that are moved, and last the
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
	// abandoned counts the moves to another revision that are still underway.
	abandoned int
	// deadline is when the passage of time changes the state of a workload; zero if none is underway.
	deadline time.Time
	// tagHolds has why a tag keeps workloads where they are, by tag.
	tagHolds map[string]string
}

// endedMove is a workload whose move has ended, and the mark that says so.
type endedMove struct {
	*inventory.Workload
	mark Mark
}

func decide(o Observed, now time.Time) decision {
	p := newPlanner(o, now)
	plan, ended, deadline := p.plan()
	return decision{passage.Next(plan, o.Batching(), now), ended, len(p.abandoned), deadline, p.tagHolds}
}

func (p *planner) plan() (plan passage.Plan, ended []endedMove, deadline time.Time) {
	plan = passage.Plan{
		Passage: v1.PassageMigration,
		Subject: passage.Object{APIVersion: v1.GroupVersion.String(), Kind: v1.IstioKind, Name: p.Istio.Name},
		Target:  p.Target.Name,
		Moves:   p.kinds,
		Hold:    passage.FirstHold(p, gates...),
		Steps:   []passage.Step{},
	}
	deadline = p.deadline
	if p.Target.Name == "" {
		return plan, nil, deadline
	}
	ended = p.endedMoves
	plan.Steps = slices.Grow(append(plan.Steps, p.namespaceSteps()...), len(p.Inventory.Workloads))
	followed := map[inventory.Owner]bool{}
	for i, w := range p.Inventory.Workloads {
		step, result := p.workloadStep(w, p.marks[i])
		if !p.moves(w.Kind) {
			if step == nil || step.StartedAt.IsZero() || step.State == passage.Failed {
				continue
			}
			// What was started before the kind was left out is seen through.
			followed[w.Owner()] = true
			if !slices.Contains(plan.Moves, w.Kind) {
				plan.Moves = append(slices.Clone(plan.Moves), w.Kind)
			}
		}
		if step != nil {
			plan.Steps = append(plan.Steps, *step)
		}
		late := p.unwrittenMark(w, p.marks[i])
		switch _, refused := p.Refused[w.UID]; {
		case refused:
		case result.unwritten != nil:
			ended = append(ended, p.newEndedMove(w, *result.unwritten))
		case late != nil && result.state == late.state():
			ended = append(ended, endedMove{w, *late})
		}
		deadline = earliest(deadline, result.deadline)
	}
	plan.Steps = append(plan.Steps, p.unmanagedWorkloads(followed)...)
	return plan, ended, deadline
}

// planner has what is the same for all workloads of one plan.
type planner struct {
	Observed
	now time.Time
	// kinds are those that are moved.
	kinds    []string
	matches  map[string]nameMatch
	timeouts timeouts
	runStart time.Time
	retry    string
	// marks are those of the workloads of the inventory, in the same order; nil for marks of another Istio.
	marks []*Mark
	// nextBatchStart is when the last move of any later batch of this run was started, by batch number.
	nextBatchStart map[int]time.Time
	// abandoned are the workloads that are moving to another revision; deadline is when the passage of time changes that.
	abandoned map[types.UID]bool
	deadline  time.Time
	// tagHolds has why a tag keeps workloads where they are, by tag.
	tagHolds map[string]string
	// endedMoves are the moves to another revision that have failed and are not recorded yet.
	endedMoves []endedMove
}

func newPlanner(o Observed, now time.Time) *planner {
	p := &planner{
		Observed: o, now: now, matches: o.matchNames(),
		timeouts: o.timeouts(), runStart: o.lastRunStart(), retry: o.retryRequest(),
		marks: o.marks.marksOf(o.Inventory.Workloads), nextBatchStart: map[int]time.Time{},
		abandoned: map[types.UID]bool{}, tagHolds: map[string]string{},
	}
	// Invalid settings hold the migration; kinds are read all the same.
	settings, _ := o.settings()
	for _, kind := range settings.WorkloadKinds {
		p.kinds = append(p.kinds, string(kind))
	}
	starts := map[int]time.Time{}
	for i, w := range o.Inventory.Workloads {
		mark := p.marks[i]
		if unwritten := p.unwrittenMark(w, mark); unwritten != nil {
			mark, p.marks[i] = unwritten, unwritten
		}
		if mark == nil || mark.Istio != o.Istio.Name || w.DeletionTimestamp != nil {
			p.marks[i] = nil
			continue
		}
		switch {
		case mark.Target != o.Target.Name:
			result := p.outcomeOf(w, *mark)
			// A rollout long after the move is not part of the move.
			if given := mark.Started.Add(p.timeouts.of(w) + podsLag); result.state == passage.Running && now.Before(given) {
				p.abandoned[w.UID] = true
				p.deadline = earliest(p.deadline, earliest(result.deadline, given))
			} else if _, refused := o.Refused[w.UID]; result.state == passage.Failed && result.unwritten != nil && !refused &&
				staysOnOldRevision(w, p.podsOf(w), *mark) {
				// That revision may become the target again.
				p.endedMoves = append(p.endedMoves, p.newEndedMove(w, *result.unwritten))
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

// moves tells whether workloads of a kind are moved.
func (p *planner) moves(kind string) bool { return slices.Contains(p.kinds, kind) }

// unwrittenMark is the mark of an ended move that could not be written, or nil.
func (p *planner) unwrittenMark(w *inventory.Workload, mark *Mark) *Mark {
	if mark == nil || len(p.Unwritten) == 0 {
		return nil
	}
	if unwritten := p.Unwritten[w.UID]; unwritten.Started.Equal(mark.Started) {
		return &unwritten
	}
	return nil
}

// newEndedMove records the last retry request with the move: only later requests retry a failed move.
func (p *planner) newEndedMove(w *inventory.Workload, mark Mark) endedMove {
	mark.Retry = p.retry
	return endedMove{w, mark}
}

func (p *planner) outcomeOf(w *inventory.Workload, mark Mark) outcome {
	timeout := p.timeouts.of(w)
	result := outcomeOf(w, p.podsOf(w), mark, timeout, p.now)
	if mark.Batch > 0 && timeout > p.timeouts.usual || !mark.Overdue.IsZero() {
		return result.withOverdue(mark, p.timeouts.usual, p.now)
	}
	return result
}

func (p *planner) podsOf(w *inventory.Workload) inventory.Pods {
	return p.Inventory.Pods[w.Owner()]
}
