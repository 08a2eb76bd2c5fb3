package rollout

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

func (p *planner) step(object passage.Object, action passage.Action, from, to string, reason passage.Reason) {
	p.Steps = append(p.Steps, passage.Step{Object: object, Action: action, From: from, To: to, Reason: reason, State: passage.Pending})
}

func (p *planner) last() *passage.Step { return &p.Steps[len(p.Steps)-1] }

// listed tells whether the plan does this already.
func (p *planner) hasStep(action passage.Action, object passage.Object) bool {
	return slices.ContainsFunc(p.Steps, func(s passage.Step) bool { return s.Action == action && s.Object == object })
}

// about is a step that is no more than a note in the status of the resource itself.
func (p *planner) statusStep(action passage.Action, from, to string, reason passage.Reason) {
	p.step(p.subject(), action, from, to, reason)
}

func (p *planner) subject() passage.Object { return objects.Subject(p.Materialize) }

// set is the StatefulSet of a generation.
func (p *planner) statefulSetOf(g *Generation) passage.Object {
	return passage.Object{
		APIVersion: objects.KindStatefulSet.GroupVersion().String(), Kind: objects.KindStatefulSet.Kind,
		Namespace: p.Materialize.Namespace, Name: objects.NamesOf(p.Materialize).Generation(g.Number),
	}
}

// apply is a step unless the object is as it should be.
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
		// One that is being deleted is made anew when it is gone.
		p.markDeleting(have)
	}
}

// gone is a step until the object is.
func (p *planner) deleteObject(object *unstructured.Unstructured, action passage.Action, reason passage.Reason) {
	p.step(objects.Identity(object), action, "", "", reason)
	p.markDeleting(object)
}

// going is the last step if it has been asked for already.
func (p *planner) markDeleting(object metav1.Object) {
	if object.GetDeletionTimestamp() != nil {
		p.last().State = passage.Running
	}
}

// byName is the order in which plans list objects. Kinds come in reverse, so that the StatefulSet goes before the record
// that it could be made from again.
func compareObjects(a, b passage.Object) int {
	return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Name, b.Name))
}

// aside holds for what a rollout neither waits for nor fails with.
func isTolerated(action passage.Action) bool { return action == ActionKeep || action == ActionDrop }

// waits holds for what somebody else has to do.
func isWait(action passage.Action) bool {
	switch action {
	case ActionAwait, ActionCatchUp, ActionApprove:
		return true
	}
	return false
}

// startable are the steps to carry out now: of those that have not settled, the first and all that do the same and follow
// at once. Nothing is started behind what is waited for.
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
