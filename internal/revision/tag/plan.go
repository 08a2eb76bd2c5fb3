package tag

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/controlplane"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// ActionPoint points the tag to another revision.
const ActionPoint passage.Action = "point"

// Plan decides what to do about an IstioRevisionTag.
func Plan(o Observed) passage.Plan {
	plan := passage.Plan{
		Passage: v1.PassageRevision,
		Subject: passage.Object{APIVersion: v1.GroupVersion.String(), Kind: v1.IstioRevisionTagKind, Name: o.Tag.Name},
		Steps:   []passage.Step{},
	}
	if o.Target != nil {
		plan.Target = o.Target.Name
	}
	if o.beingDeleted() {
		for _, state := range o.ObsoleteReleases {
			plan.Steps = append(plan.Steps, installer.UninstallStep(state.Namespace, state.Name,
				passage.Because(v1.ReasonBeingDeleted, "IstioRevisionTag %s is being deleted", o.Tag.Name)))
		}
		if len(plan.Steps) == 0 {
			plan.Hold = installer.RemainingFinalizers(o.Tag)
		}
		return plan
	}
	plan.Hold = installer.WhilePaused(v1.IstioRevisionTagKind, o.Tag)
	blocker := passage.FirstHold(o, whileNameIsTaken, whileTargetNotReady, whileNamespaceIsMissing)
	if blocker != nil {
		plan.Steps = append(plan.Steps, passage.Step{
			Object: plan.Subject,
			Action: ActionPoint,
			From:   o.Tag.Status.IstioRevision,
			To:     plan.Target,
			State:  installer.BlockedState(*blocker),
			Reason: *blocker,
		})
	}
	if o.Release.Namespace != "" {
		plan.Steps = append(plan.Steps, installer.Steps(o.Release, o.reported())...)
	}
	// New before old: where the tag was before goes last.
	for _, state := range o.ObsoleteReleases {
		why := passage.Because(v1.ReasonReleaseDiffers, "the tag points into namespace %s now", o.Release.Namespace)
		if blocker != nil {
			why = *blocker
		}
		step := installer.UninstallStep(state.Namespace, state.Name, why)
		if o.Release.Namespace != "" && !o.Release.Installed() {
			step.State = passage.Running
		}
		plan.Steps = append(plan.Steps, step)
	}
	return plan
}

func whileNameIsTaken(o Observed) *passage.Reason {
	if o.SameNameRevision == nil || controlplane.NameHolder(o.SameNameRevision, o.Tag) {
		return nil
	}
	holder := "IstioRevision " + o.SameNameRevision.Name
	if !o.SameNameRevision.DeletionTimestamp.IsZero() {
		return passage.Hold(v1.ReasonNameAlreadyExists, "the name is still used by %s, which is being removed", holder)
	}
	inUse := ""
	if o.SameNameUsage.Used() {
		inUse = fmt.Sprintf(" (in use by %s)", o.SameNameUsage)
	}
	return passage.Hold(v1.ReasonNameAlreadyExists,
		"the name is already used by %s%s; the tag gets the name when %s is deleted, or give the tag another name",
		holder, inUse, holder)
}

// whileTargetNotReady is why the tag cannot point to its target now, or nil. New before old: a tag moves only to a ready
// revision.
func whileTargetNotReady(o Observed) *passage.Reason {
	ref := o.Tag.Spec.TargetRef
	switch {
	case o.Target == nil && ref.Kind == v1.IstioKind && o.Istio != nil:
		return passage.Hold(v1.ReasonIstiodNotReady, "Istio %s has no active revision yet%s", ref.Name, describeCurrent(o))
	case o.Target == nil:
		return passage.Hold(v1.ReasonRefNotFound, "%s %s, which spec.targetRef names, does not exist; create it or change the reference%s",
			ref.Kind, ref.Name, describeCurrent(o))
	case o.Current != nil && o.Current.Name == o.Target.Name:
		return nil
	case !ready(o.Target):
		return passage.Hold(v1.ReasonIstiodNotReady, "IstioRevision %s is not ready%s", o.Target.Name, describeCurrent(o))
	}
	return nil
}

func whileNamespaceIsMissing(o Observed) *passage.Reason {
	if o.MissingNamespace == "" {
		return nil
	}
	return passage.Hold(v1.ReasonNamespaceNotFound,
		"namespace %s of IstioRevision %s does not exist; create it, and the tag is then installed",
		o.MissingNamespace, o.pointsTo().Name)
}

func describeCurrent(o Observed) string {
	switch {
	case o.Tag.Status.IstioRevision == "":
		return "; until then the tag points nowhere"
	case o.Current == nil:
		// Without the webhook, pods would be created without a sidecar.
		return fmt.Sprintf("; until then the tag still points to IstioRevision %s, which is gone, and pods that use the tag are refused",
			o.Tag.Status.IstioRevision)
	}
	return "; until then the tag still points to IstioRevision " + o.Tag.Status.IstioRevision
}

func ready(revision *v1.IstioRevision) bool {
	condition := meta.FindStatusCondition(revision.Status.Conditions, string(v1.ConditionReady))
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == revision.Generation
}
