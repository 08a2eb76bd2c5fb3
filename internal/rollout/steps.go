package rollout

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

func (p *planner) step(object passage.Object, action passage.Action, from, to string, reason passage.Reason) {
	p.Steps = append(p.Steps, passage.Step{Object: object, Action: action, From: from, To: to, Reason: reason, State: passage.Pending})
}

func (p *planner) last() *passage.Step { return &p.Steps[len(p.Steps)-1] }

// hasStep tells whether the plan has such a step already.
func (p *planner) hasStep(action passage.Action, object passage.Object) bool {
	return slices.ContainsFunc(p.Steps, func(s passage.Step) bool { return s.Action == action && s.Object == object })
}

// statusStep is a step that writes nothing but the status of the Materialize.
func (p *planner) statusStep(action passage.Action, from, to string, reason passage.Reason) {
	p.step(p.subject(), action, from, to, reason)
}

func (p *planner) subject() passage.Object {
	return objects.IdentityOf(p.Materialize, v1alpha2.GroupVersion.WithKind(v1alpha2.MaterializeKind), p.Materialize.Name)
}

// statefulSetOf names the StatefulSet of a generation.
func (p *planner) statefulSetOf(g *Generation) passage.Object {
	return objects.IdentityOf(p.Materialize, objects.KindStatefulSet, objects.NamesOf(p.Materialize).Generation(g.Number))
}

// apply adds a step unless the object is as desired.
func (p *planner) apply(action passage.Action, want, have *unstructured.Unstructured) {
	reason := passage.Because(CodeMissing, "does not exist")
	if have != nil {
		why := objects.Drift(want, have)
		if why == "" {
			return
		}
		reason = passage.Because(CodeDrifted, "%s", why)
	}
	p.desired[objects.Identity(want)] = want
	p.step(objects.Identity(want), action, "", "", reason)
	if have != nil {
		// An object that is being deleted is created again when it is gone.
		p.markDeleting(have)
	}
}

// deleteObject adds a step until the object is gone.
func (p *planner) deleteObject(object *unstructured.Unstructured, action passage.Action, reason passage.Reason) {
	p.step(objects.Identity(object), action, "", "", reason)
	p.markDeleting(object)
}

// markDeleting marks the last step as running if the deletion has been requested already.
func (p *planner) markDeleting(object metav1.Object) {
	if object.GetDeletionTimestamp() != nil {
		p.last().State = passage.Running
	}
}

// compareObjects is the order in which plans list objects. Kinds come in reverse, so that the StatefulSet is deleted before
// the record from which it could be created again.
func compareObjects(a, b passage.Object) int {
	return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Name, b.Name))
}

// isTolerated holds for actions that a rollout neither waits for nor fails with.
func isTolerated(action passage.Action) bool {
	return action == ActionApplyShared || action == ActionDeleteShared
}

// isWait holds for actions that nothing is done for.
func isWait(action passage.Action) bool {
	return action == ActionAwait || action == ActionCatchUp || action == ActionApprove
}

// startable are the steps to execute now: the first that has not settled, and those with the same action directly after it.
// No step starts behind one that waits.
func startable(steps []passage.Step) []passage.Step {
	var start []passage.Step
	var head passage.Action
	for _, step := range steps {
		switch {
		case step.State == passage.Done, step.State == passage.Running && isTolerated(step.Action):
			continue
		case head == "":
			head = step.Action
		case step.Action != head:
			return start
		}
		if step.State == passage.Pending && !isWait(step.Action) {
			start = append(start, step)
		}
	}
	return start
}

// existing is a shared object as it is, by whichever operator; nil if there is none.
func (p *planner) existing(object *unstructured.Unstructured) *unstructured.Unstructured {
	return cmp.Or(p.SharedObjects[objects.Identity(object)], p.InheritedObjects[objects.Identity(object)])
}

// keepsInherited tells whether an object stays as another operator has made it. What a new generation needs is applied before that
// starts, and balancerd and the console are replaced when it is active. Their replicas are set at any time.
func (p *planner) keepsInherited(object *unstructured.Unstructured) bool {
	have := p.InheritedObjects[objects.Identity(object)]
	switch {
	case have == nil:
		return false
	case object.GroupVersionKind() == objects.KindDeployment:
		return objects.HasReplicas(object, have)
	}
	return !p.rollsOut()
}

// keepPods is a Deployment with what must stay of the existing one: all of the pods, as long as a generation of another operator is
// active, and otherwise the selector.
func (p *planner) keepPods(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	if active := p.Active(); active != nil && active.Foreign {
		return objects.KeepTemplate(want, have)
	}
	if have == nil {
		return want
	}
	return objects.KeepSelector(objects.KeepPodSecurity(p.Materialize, want, have), have)
}
