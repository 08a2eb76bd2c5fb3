package forecast

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/binding"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// WatchedKinds are the kinds that the status of a policy depends on: those of Fairlead, and those that the policy selects.
func WatchedKinds(policy *policy.Policy) []client.Object {
	all := []client.Object{&clusterv1alpha1.Cluster{}, &workv1alpha2.ResourceBinding{}}
	if policy.Namespace == "" {
		all = append(all, &workv1alpha2.ClusterResourceBinding{})
	}
	for kind := range policy.Kinds() {
		all = append(all, newTemplate(kind))
	}
	return all
}

// Status is how far the operator is with a policy, by the statuses on the hub.
func Status(ctx context.Context, hub client.Reader, subject *policy.Policy) (passage.Plan, error) {
	plan := passage.Plan{Passage: model.Passage, Subject: subject.Object(), Hold: subject.Hold(), Steps: []passage.Step{}}
	v, err := observeHub(ctx, hub, subject)
	if err != nil {
		return plan, err
	}
	if subject.Aborted {
		plan.Hold, plan.Steps = nil, v.abortSteps(subject)
		return plan, nil
	}
	if unsupported := unsupportedSteps(subject); len(unsupported) > 0 {
		plan.Steps = unsupported
		return plan, nil
	}
	if err := subject.PlacementError(); err != nil {
		plan.Steps = append(plan.Steps, passage.Step{
			Object: plan.Subject, Action: model.ActionBind, State: passage.Failed, Uncounted: true, Reason: passage.Because(model.ReasonInvalidPlacement, "%v", err),
		})
		return plan, nil
	}
	s := &statusPlan{hub: v, subject: subject, included: map[string]bool{}, held: plan.Hold != nil}
	s.addSelected(ctx, hub)
	s.addReleased()
	if subject.MayPropagateDeps() {
		if err := s.addDependencies(ctx, hub); err != nil {
			return plan, err
		}
	}
	plan.Steps = append(plan.Steps, s.steps...)
	plan.Steps = append(plan.Steps, selectorSteps(subject)...)
	plan.Steps = append(plan.Steps, v.placementSteps(subject)...)
	plan.Steps = append(plan.Steps, reportStep(subject, len(s.included), plan.Steps)...)
	slices.SortFunc(plan.Steps, func(a, b passage.Step) int { return compareObjects(a.Object, b.Object) })
	return plan, nil
}

// reportStep waits for the status of a policy, which the operator writes after those of the bindings, when all other steps are done.
func reportStep(p *policy.Policy, bindings int, done []passage.Step) []passage.Step {
	if p.Hold() != nil || len(done) == 0 || slices.ContainsFunc(done, func(s passage.Step) bool { return s.State != passage.Done }) {
		return nil
	}
	ready := meta.FindStatusCondition(p.Status.Conditions, policyv1alpha1.ConditionReady)
	// The operator may be unable to read a kind that the user of a command can read.
	if ready != nil && passage.Code(ready.Reason) == model.ReasonNotFollowed {
		return nil
	}
	reason := readyReason(ready)
	if ready != nil && ready.Status == metav1.ConditionTrue {
		if int(p.Status.Matched) == bindings {
			return nil
		}
		reason = passage.Because(model.ReasonApplying, "the status of the policy counts %d resources, and not %d yet", p.Status.Matched, bindings)
	}
	return []passage.Step{{Object: p.Object(), Action: model.ActionReport, State: passage.Running, Uncounted: true, Reason: reason}}
}

func readyReason(ready *metav1.Condition) passage.Reason {
	if ready == nil {
		return notReported
	}
	return passage.Because(passage.Code(ready.Reason), "condition Ready of the policy is still %s: %s", ready.Status, ready.Message)
}

func compareObjects(a, b passage.Object) int {
	return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// abortSteps are those of an aborted policy: one for each resource that is not yet released, or one for the policy.
func (v *hubState) abortSteps(policy *policy.Policy) []passage.Step {
	var all []passage.Step
	taken := map[string]bool{}
	for _, b := range v.bindings {
		taken[b.Path()] = model.ClaimOf(b) == policy.Key()
	}
	for _, b := range v.bindings {
		if taken[b.Path()] || policy.MayPropagateDeps() && model.IsRequiredBy(b, taken) {
			all = append(all, passage.Step{
				Object: model.TemplateOfBinding(b).Object(), Action: model.ActionRestore, State: passage.Running,
				Reason: passage.Because(model.ReasonAborting, "not yet released"),
			})
		}
	}
	if len(all) == 0 {
		ready := meta.FindStatusCondition(policy.Status.Conditions, policyv1alpha1.ConditionReady)
		if ready == nil || passage.Code(ready.Reason) != model.ReasonAborted {
			return []passage.Step{{Object: policy.Object(), Action: model.ActionReport, State: passage.Running, Uncounted: true, Reason: readyReason(ready)}}
		}
		return []passage.Step{{Object: policy.Object(), Action: model.ActionRestore, State: passage.Done, Uncounted: true, Reason: *policy.Hold()}}
	}
	slices.SortFunc(all, func(a, b passage.Step) int { return cmp.Compare(a.Object.String(), b.Object.String()) })
	return all
}

// unsupportedSteps are those of a policy with fields that are not supported: the policy fails, and nothing else is done.
func unsupportedSteps(policy *policy.Policy) []passage.Step {
	unsupported := policy.Unsupported()
	if unsupported == nil || policy.Aborted {
		return nil
	}
	return []passage.Step{{Object: policy.Object(), Action: model.ActionBind, State: passage.Failed, Uncounted: true, Reason: *unsupported}}
}

// AbortProgress is how many of the resources that an aborted policy had are released, by the steps that are left.
func AbortProgress(p *policy.Policy, left passage.Plan) (released, total int) {
	remaining := left.Counts().Running
	total = max(int(p.Status.Matched+p.Status.Released), remaining)
	return total - remaining, total
}

// selectorSteps are the selectors of a policy that cannot work.
func selectorSteps(policy *policy.Policy) []passage.Step {
	var all []passage.Step
	invalid := policy.SelectorErrors()
	for _, i := range slices.Sorted(maps.Keys(invalid)) {
		all = append(all, passage.Step{
			Object: policy.Object(), Action: model.ActionSelect, State: passage.Failed, Uncounted: true,
			Reason: passage.Because(model.ReasonInvalidSelector, "spec.resourceSelectors[%d].labelSelector selects nothing: %v", i, invalid[i]),
		})
	}
	if err := policy.KindsError(); err != nil {
		all = append(all, passage.Step{
			Object: policy.Object(), Action: model.ActionSelect, State: passage.Failed, Uncounted: true,
			Reason: passage.Because(model.ReasonInvalidSelector, "%v", err),
		})
	}
	return all
}

// placementSteps are the clusters that a policy asks for by name and that have not joined.
func (v *hubState) placementSteps(subject *policy.Policy) []passage.Step {
	missing := policy.NotJoined(subject.Spec.Placement, v.members)
	if len(missing) == 0 {
		return nil
	}
	return []passage.Step{{
		Object: subject.Object(), Action: model.ActionBind, State: passage.Failed, Uncounted: true, Reason: policy.NotJoinedReason(missing),
	}}
}

var (
	notReported        = passage.Because(model.ReasonApplying, "not yet reported by the operator")
	versionNotReported = passage.Because(model.ReasonApplying, "the operator has not reported on the latest version of the template yet: is it running?")
	notReleased        = passage.Because(model.ReasonApplying, "the policy no longer takes the template, and the operator has not released it yet")
	deletionNotSeen    = passage.Because(model.ReasonApplying, "the template is deleted, and the operator has not reported on that yet")
)

// stepsOf a resource are one for each cluster that it goes to. Version is that of the template, empty if it is unknown. Unknown are
// the clusters of whose objects the states are unknown, and why.
func stepsOf(t model.Template, version string, b *model.Binding, unknown map[string]passage.Reason, held bool) []passage.Step {
	template := t.Object()
	bind := passage.Step{Object: template, Action: model.ActionBind, State: passage.Running, Reason: notReported}
	switch {
	case b == nil || b.GetDeletionTimestamp() != nil || b.Status.ObservedGeneration < b.GetGeneration():
		return []passage.Step{bind}
	case version != "" && (b.Status.TemplateVersion != version || model.ActivatedVersion(b) != "" && model.ActivatedVersion(b) != version):
		bind.Reason = versionNotReported
		return []passage.Step{bind}
	}
	var all []passage.Step
	deferred := model.DeferredReason(b)
	if reason := model.NoClusterReason(b); reason != nil {
		bind.State, bind.Reason = passage.Failed, *reason
		if deferred != nil {
			bind.State, bind.Held = passage.Pending, true
		}
		all = append(all, bind)
	}
	for _, target := range model.Targets(b) {
		step := passage.Step{Object: template, Action: model.ActionApply, State: passage.Running, Reason: binding.NotWritten(target.Name)}
		step.Object.Cluster = target.Name
		i := slices.IndexFunc(b.Status.AggregatedStatus, func(s workv1alpha2.AggregatedStatusItem) bool { return s.ClusterName == target.Name })
		if why, found := unknown[target.Name]; found {
			step.Reason = why
		} else if i >= 0 {
			step.State, step.Reason = statusOf(b.Status.AggregatedStatus[i], held)
			if step.State == passage.Done && deferred != nil {
				step.Reason = *deferred
			}
		}
		all = append(all, step)
	}
	return all
}

// statusOf an object in one cluster. An earlier version of the operator has written items without a reason.
func statusOf(item workv1alpha2.AggregatedStatusItem, held bool) (passage.State, passage.Reason) {
	code, message := passage.Code(item.Reason), item.AppliedMessage
	switch {
	case item.Applied:
		return passage.Done, passage.Because(model.ReasonApplied, "%s", item.Health)
	case code == "":
		return passage.Running, notReported
	case code == model.ReasonApplying || code == model.ReasonFinished || code == model.ReasonUnreachable || code == model.ReasonBeingDeleted:
		// The operator goes on by itself: a cluster that is back is written to, and an object that is gone is created again.
		return passage.Running, passage.Because(code, "%s", message)
	case held:
		return passage.Pending, passage.Because(model.ReasonSuspended, "%s", message)
	case code == model.ReasonSuspended:
		return passage.Pending, passage.Because(code, "%s", message)
	case code == model.ReasonConflict:
		return passage.Failed, passage.Because(code, "%s", message)
	}
	return passage.Failed, passage.Because(model.ReasonNotApplied, "%s", message)
}
