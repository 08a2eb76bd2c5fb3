package adoption

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// What is told of how far a policy is.
const (
	// ActionApply has an object be in a cluster as it should.
	ActionApply passage.Action = "apply"
	// ActionBind finds the clusters that a resource goes to.
	ActionBind passage.Action = "bind"
	// ActionSelect finds the resources that a policy takes.
	ActionSelect passage.Action = "select"
	// ActionPutBack lets go of a resource that was aborted, in all of its clusters.
	ActionPutBack passage.Action = "put back"
)

// Watched are the kinds that the standing of a policy is told from: those of Fairlead, and those that the policy selects.
func Watched(policy *Policy) []client.Object {
	all := []client.Object{&clusterv1alpha1.Cluster{}, &workv1alpha2.ResourceBinding{}}
	if policy.Namespace == "" {
		all = append(all, &workv1alpha2.ClusterResourceBinding{})
	}
	for kind := range policy.kinds() {
		all = append(all, metadataOf(kind))
	}
	return all
}

// Standing is how far the operator is with a policy, by what it has written down on the hub.
func Standing(ctx context.Context, hub client.Reader, policy *Policy) (passage.Plan, error) {
	plan := passage.Plan{Passage: Name, Subject: policy.object(), Hold: policy.hold(), Steps: []passage.Step{}}
	v, err := view(ctx, hub, policy)
	if err != nil {
		return plan, err
	}
	if policy.Aborted {
		plan.Hold, plan.Steps = nil, v.retreat(policy)
		return plan, nil
	}
	if err := policy.invalidPlacement(); err != nil {
		plan.Steps = append(plan.Steps, passage.Step{
			Object: plan.Subject, Action: ActionBind, State: passage.Failed, Reason: passage.Because(ReasonInvalidPlacement, "%v", err),
		})
		return plan, nil
	}
	down, err := unreachable(ctx, hub)
	if err != nil {
		return plan, err
	}
	included := map[string]bool{}
	add := func(t Template, b *binding) {
		if b != nil && included[b.path()] {
			return
		}
		if b != nil {
			included[b.path()] = true
		}
		plan.Steps = append(plan.Steps, stepsOf(t, b, down, plan.Hold != nil)...)
	}
	for kind := range policy.kinds() {
		err := eachOf(ctx, hub, &metav1.PartialObjectMetadataList{}, kind, policy.Namespace, func(o client.Object) {
			t := describe(o)
			b := v.bindingOf(t)
			if chosen := choose(t, v.policies, claimOf(b)); o.GetDeletionTimestamp() == nil && chosen != nil && chosen.Key() == policy.Key() {
				if b != nil && outdated(b, policy) {
					included[b.path()], b = true, nil
				}
				add(t, b)
			}
		})
		if err != nil {
			plan.Steps = append(plan.Steps, passage.Step{
				Object: plan.Subject, Action: ActionSelect, State: passage.Failed, Reason: passage.Because(ReasonNotFollowed, "%v", err),
			})
		}
	}
	if policy.Spec.PropagateDeps {
		for _, b := range v.bindings {
			if needsOf(b, included) {
				add(templateIn(b), b)
			}
		}
	}
	plan.Steps = append(plan.Steps, misselections(policy)...)
	slices.SortFunc(plan.Steps, func(a, b passage.Step) int {
		return cmp.Or(cmp.Compare(a.Object.Cluster, b.Object.Cluster), cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	return plan, nil
}

// retreat is how far a policy is that was aborted: a step for each resource that has yet to be put back, or one for all.
func (v *hubView) retreat(policy *Policy) []passage.Step {
	var all []passage.Step
	for _, b := range v.bindings {
		if claimOf(b) == policy.Key() {
			t := templateIn(b)
			all = append(all, passage.Step{
				Object: passage.Object{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}, Action: ActionPutBack,
				State: passage.Running, Reason: passage.Because(ReasonAborting, "it has yet to be let go of"),
			})
		}
	}
	if len(all) == 0 {
		return []passage.Step{{Object: policy.object(), Action: ActionPutBack, State: passage.Done, Reason: *policy.hold()}}
	}
	slices.SortFunc(all, func(a, b passage.Step) int { return cmp.Compare(a.Object.String(), b.Object.String()) })
	return all
}

// outdated holds for a binding that does not say yet what its policy says now.
func outdated(b *binding, policy *Policy) bool {
	resolution, _ := resolve(policy.Spec.ConflictResolution, "")
	return b.spec.ConflictResolution != resolution || !equality.Semantic.DeepEqual(b.spec.Placement, &policy.Spec.Placement) ||
		!equality.Semantic.DeepEqual(b.spec.Suspension, suspension(policy))
}

// needsOf holds for a binding whose resource is needed by one of others.
func needsOf(b *binding, others map[string]bool) bool {
	return slices.ContainsFunc(b.spec.RequiredBy, func(by workv1alpha2.BindingSnapshot) bool {
		return others[strings.TrimPrefix(by.Namespace+"/"+by.Name, "/")]
	})
}

func templateIn(b *binding) Template {
	r := b.spec.Resource
	return Template{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// misselections are the selectors of a policy that cannot work.
func misselections(policy *Policy) []passage.Step {
	var all []passage.Step
	invalid := policy.invalidSelectors()
	for _, i := range slices.Sorted(maps.Keys(invalid)) {
		all = append(all, passage.Step{
			Object: policy.object(), Action: ActionSelect, State: passage.Failed,
			Reason: passage.Because(ReasonInvalidSelector, "spec.resourceSelectors[%d].labelSelector selects nothing: %v", i, invalid[i]),
		})
	}
	return all
}

// unreachable are the clusters that are waited for.
func unreachable(ctx context.Context, hub client.Reader) (map[string]bool, error) {
	var list clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}
	down := map[string]bool{}
	for i := range list.Items {
		down[list.Items[i].Name] = !meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, clusterv1alpha1.ConditionReady)
	}
	return down, nil
}

// stepsOf a resource are one for each cluster that it goes to. Down are the clusters that cannot be reached.
func stepsOf(t Template, b *binding, down map[string]bool, held bool) []passage.Step {
	template := passage.Object{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
	if b == nil || b.GetDeletionTimestamp() != nil || b.status.ObservedGeneration < b.GetGeneration() {
		return []passage.Step{{Object: template, Action: ActionBind, State: passage.Running, Reason: passage.Because(ReasonApplying, "the operator has yet to report on it")}}
	}
	whole := meta.FindStatusCondition(b.status.Conditions, workv1alpha2.ConditionFullyApplied)
	if len(targets(b)) == 0 {
		step := passage.Step{Object: template, Action: ActionBind, State: passage.Failed, Reason: passage.Because(ReasonNoCluster, "no cluster that has joined is selected by spec.placement")}
		return []passage.Step{step}
	}
	var all []passage.Step
	for _, target := range targets(b) {
		step := passage.Step{Object: template, Action: ActionApply, State: passage.Running, Reason: passage.Because(ReasonApplying, "%s", yetToWrite(target.Name))}
		step.Object.Cluster = target.Name
		i := slices.IndexFunc(b.status.AggregatedStatus, func(s workv1alpha2.AggregatedStatusItem) bool { return s.ClusterName == target.Name })
		if i >= 0 {
			step.State, step.Reason = standingOf(b.status.AggregatedStatus[i], whole, down[target.Name], held)
		}
		all = append(all, step)
	}
	return all
}

// standingOf an object in one cluster.
func standingOf(item workv1alpha2.AggregatedStatusItem, whole *metav1.Condition, down, held bool) (passage.State, passage.Reason) {
	message := item.AppliedMessage
	switch {
	case item.Applied:
		return passage.Done, passage.Because(ReasonApplied, "%s", item.Health)
	case message == yetToWrite(item.ClusterName):
		return passage.Running, passage.Because(ReasonApplying, "%s", message)
	case down:
		return passage.Running, passage.Because(ReasonUnreachable, "%s", message)
	case held:
		return passage.Pending, passage.Because(ReasonSuspended, "%s", message)
	case whole != nil && strings.Contains(whole.Message, message):
		return passage.Failed, passage.Because(whole.Reason, "%s", message)
	}
	return passage.Failed, passage.Because(ReasonNotApplied, "%s", message)
}

// yetToWrite is what is said of a cluster that has not been written to.
func yetToWrite(cluster string) string { return "cluster " + cluster + " has yet to be written to" }
