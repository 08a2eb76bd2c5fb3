package migration

import (
	"cmp"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/migration/fleet"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// What a step can be.
const (
	// ActionRelabel changes the label by which a namespace, or the pods of a Deployment, choose their revision.
	ActionRelabel passage.Action = "relabel"
	// ActionRestart replaces pods that choose rightly and run on another revision all the same.
	ActionRestart passage.Action = "restart"
	// ActionStay is not to touch a workload that is not where it should be.
	ActionStay passage.Action = "stay"
)

// Plan decides what to do about the workloads of an Istio. Namespaces come first, then Deployments, and last what is not
// moved and keeps an old revision alive.
func Plan(o Observed, now time.Time) passage.Plan {
	p := newPlanner(o, now)
	plan := passage.Plan{
		Passage: v1.PassageMigration,
		Subject: passage.Object{APIVersion: v1.GroupVersion.String(), Kind: v1.IstioKind, Name: o.Istio.Name},
		Target:  o.Target.Name,
		Moves:   kindDeployment,
		Hold:    passage.FirstHold(p, gates...),
		Steps:   []passage.Step{},
	}
	if o.Target.Name == "" {
		return plan
	}
	plan.Steps = append(plan.Steps, p.namespaces()...)
	for _, d := range o.Fleet.Deployments {
		if step := p.deployment(d); step != nil {
			plan.Steps = append(plan.Steps, *step)
		}
	}
	plan.Steps = append(plan.Steps, p.bystanders()...)
	return plan
}

// planner has what is the same for all workloads of one plan.
type planner struct {
	Observed
	now     time.Time
	names   map[string]meaning
	timeout time.Duration
	run     time.Time
	retry   time.Time
}

func newPlanner(o Observed, now time.Time) planner {
	settings, err := o.settings()
	if err != nil {
		settings.ReadinessTimeout = v1.DefaultReadinessTimeout
	}
	return planner{
		Observed: o, now: now, names: o.namesOf(),
		timeout: settings.ReadinessTimeout, run: o.run(), retry: o.retry(),
	}
}

// namespaces are the steps of phase one, which restart nothing.
func (p planner) namespaces() []passage.Step {
	var steps []passage.Step
	for _, name := range slices.Sorted(maps.Keys(p.Fleet.Namespaces)) {
		choice := usage.Choose(p.Fleet.Namespaces[name].Labels, nil)
		if choice.Name == "" || p.names[choice.Name].standing != outdated {
			continue
		}
		step := passage.Step{
			Object: passage.Object{APIVersion: "v1", Kind: "Namespace", Name: name},
			Action: ActionRelabel, From: choice.Name, To: p.Target.Name, State: passage.Pending,
			Reason: passage.Because(v1.ReasonNamesOldRevision, "its label %s names it", choice.Label),
		}
		if why, refused := p.Refused[p.Fleet.Namespaces[name].UID]; refused {
			step.State, step.Reason = passage.Failed, why
		}
		steps = append(steps, step)
	}
	return steps
}

// deployment is the step of a Deployment, or nil if it has nothing to do with this migration.
func (p planner) deployment(d *appsv1.Deployment) *passage.Step {
	if d.DeletionTimestamp != nil {
		return nil
	}
	step := &passage.Step{
		Object: deployment(d.Namespace, d.Name), To: p.Target.Name, Disruptive: true,
	}
	pods := p.Fleet.Pods[fleet.DeploymentOf(d)]
	mark := markOf(d)
	if mark == nil || mark.Target != p.Target.Name {
		return p.unstarted(step, d, pods, nil)
	}
	far := settle(d, pods, *mark, timeoutOf(d, p.timeout), p.now)
	if far.state == passage.Failed && !mark.Failed.IsZero() && mark.Failed.Before(p.retry) {
		return p.unstarted(step, d, pods, mark)
	}
	return p.started(step, d, far, *mark)
}

// started is the step of a Deployment that was moved before. One that is done counts only in its own migration; one that
// has failed stays failed in those that follow.
func (p planner) started(step *passage.Step, d *appsv1.Deployment, far outcome, mark Mark) *passage.Step {
	step.Action, step.From, step.State, step.Progress = mark.Action, mark.From, far.state, far.progress
	step.StartedAt, step.EndedAt = mark.Started, far.ended
	step.Reason = passage.Because(v1.ReasonWorkloadRestarting, "its pods are being replaced")
	if w, err := wishesOf(d); err == nil {
		step.Priority = w.priority
	}
	if mark.Run.Equal(p.run) {
		step.Batch = mark.Batch
	}
	switch far.state {
	case passage.Done:
		if !mark.Run.Equal(p.run) {
			return nil
		}
		step.Reason = passage.Because(v1.ReasonRunsOnTarget, "it runs on %s", p.Target.Name)
	case passage.Failed:
		step.Reason = *far.reason
	}
	if mark.Batch == 0 {
		step.Disruptive = false
	}
	return step
}

// underwayElsewhere is the mark of a Deployment that is moving to another revision of the same Istio.
func (p planner) underwayElsewhere(d *appsv1.Deployment) *Mark {
	mark := markOf(d)
	if mark == nil || mark.Istio != p.Istio.Name || mark.Target == p.Target.Name || d.DeletionTimestamp != nil {
		return nil
	}
	far := settle(d, p.Fleet.Pods[fleet.DeploymentOf(d)], *mark, timeoutOf(d, p.timeout), p.now)
	if far.state != passage.Running {
		return nil
	}
	return mark
}

// Deadline is when time alone changes how far one of the workloads is; zero if none is underway.
func Deadline(o Observed, now time.Time) time.Time {
	p := newPlanner(o, now)
	var next time.Time
	for _, d := range o.Fleet.Deployments {
		if mark := markOf(d); mark != nil && mark.Istio == o.Istio.Name && mark.Failed.IsZero() {
			far := settle(d, o.Fleet.Pods[fleet.DeploymentOf(d)], *mark, timeoutOf(d, p.timeout), now)
			next = sooner(next, far.changes)
		}
	}
	return next
}

// bystanders are the workloads of other kinds that run on an old revision.
func (p planner) bystanders() []passage.Step {
	var steps []passage.Step
	for workload, pods := range p.Fleet.Pods {
		old := p.outdated(pods)
		if len(old) == 0 || workload.Kind == kindDeployment {
			continue
		}
		how := "restart it when its own label names " + p.Target.Name
		if choice := usage.Choose(p.Fleet.Namespaces[workload.Namespace].Labels, nil); p.leads(choice) {
			how = "it moves at its next restart"
		}
		steps = append(steps, passage.Step{
			Object: passage.Object{APIVersion: workload.APIVersion, Kind: workload.Kind, Namespace: workload.Namespace, Name: workload.Name},
			Action: ActionStay, From: names(old), To: p.Target.Name, State: passage.Skipped,
			Reason: passage.Because(v1.ReasonKindNotMoved, "a %s is not moved; %s", workload.Kind, how),
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
