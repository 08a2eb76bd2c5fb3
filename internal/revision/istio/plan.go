package istio

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// What a step can be.
const (
	// ActionResolve finds the exact version that spec.version stands for.
	ActionResolve passage.Action = "resolve"
	// ActionCreate writes a revision that is not there.
	ActionCreate passage.Action = "create"
	// ActionUpdate writes a revision that differs from what the Istio asks for.
	ActionUpdate passage.Action = "update"
	// ActionAdopt sets the Istio as owner of a matching revision without one.
	ActionAdopt passage.Action = "adopt"
	// ActionDelete deletes the tag "default" when the Istio no longer asks for it.
	ActionDelete passage.Action = "delete"
	// ActionRun waits for the control plane of a revision that is as the Istio asks.
	ActionRun passage.Action = "run"
	// ActionMove waits for a tag that follows the Istio.
	ActionMove passage.Action = "move"
	// ActionRetire records since when a revision is inactive.
	ActionRetire passage.Action = "retire"
	// ActionPrune deletes a revision that is neither active nor used.
	ActionPrune passage.Action = "prune"
)

// Plan decides what to do about an Istio.
func Plan(o Observed, now time.Time) passage.Plan {
	plan := passage.Plan{
		Passage: v1.PassageRevision,
		Subject: object(v1.IstioKind, o.Istio.Name),
		Hold:    passage.FirstHold(o, whileBeingDeleted, whilePaused),
		Steps:   []passage.Step{},
	}
	if o.beingDeleted() {
		return plan
	}
	version, unresolved := resolve(o)
	if unresolved != nil {
		plan.Steps = append(plan.Steps, passage.Step{
			Object: plan.Subject,
			Action: ActionResolve,
			From:   o.Istio.Spec.Version,
			Reason: *unresolved,
			State:  passage.Failed,
		})
		return plan
	}
	want := desiredRevision(o.Istio, version)
	plan.Target = want.Name
	step := revisionStep(o, want)
	if reason := nameTooLong(o.Istio, version, want.Name); reason != nil {
		step.State, step.Reason = passage.Failed, *reason
	}
	plan.Steps = append(plan.Steps, step)
	if step.State == passage.Failed && step.Action != ActionRun {
		return plan
	}
	plan.Steps = append(plan.Steps, defaultTagSteps(o, want.Name)...)
	plan.Steps = append(plan.Steps, tagSteps(o, want.Name)...)
	plan.Steps = append(plan.Steps, retireSteps(o, want.Name, now)...)
	return plan
}

// startable are the steps to apply now. The controller of tags moves tags.
func startable(plan passage.Plan, now time.Time) []passage.Step {
	return slices.DeleteFunc(passage.Next(plan, passage.Batching{}, now).Start, func(s passage.Step) bool { return s.Action == ActionMove })
}

func whileBeingDeleted(o Observed) *passage.Reason {
	if !o.beingDeleted() {
		return nil
	}
	return passage.Hold(v1.ReasonBeingDeleted, "Istio %s is being deleted, and its revisions with it", o.Istio.Name)
}

func whilePaused(o Observed) *passage.Reason {
	return installer.WhilePaused(v1.IstioKind, o.Istio)
}

// resolve finds the exact version that spec.version requests, or why there is none.
func resolve(o Observed) (string, *passage.Reason) {
	if reported := reportedChartError(o.Istio); reported != nil && o.Charts.UseReportedError {
		return "", reported
	}
	asked := o.Istio.Spec.Version
	runs := o.satisfiedVersion(asked)
	switch {
	case o.Charts.Err != nil && runs != "":
		return runs, nil // without a list of versions, the running one is kept
	case o.Charts.Err != nil && isExactVersion(asked):
		return asked, nil // the IstioRevision reports whether it can be installed
	case o.Charts.Err != nil:
		return "", passage.NewReason(v1.ReasonChartsUnavailable, "%v", o.Charts.Err)
	}
	version, err := charts.Resolve(asked, o.Charts.Versions)
	switch {
	case err != nil && runs == asked && isExactVersion(asked):
		return asked, nil
	case err != nil:
		return "", passage.NewReason(v1.ReasonVersionNotFound, "%v", err)
	case charts.Older(version, runs):
		return runs, nil // removed charts do not cause a downgrade
	}
	return version, nil
}

// reportedChartError is the error that the operator has reported about the charts of the current spec, or nil.
func reportedChartError(istio *v1.Istio) *passage.Reason {
	condition := meta.FindStatusCondition(istio.Status.Conditions, string(v1.ConditionReconciled))
	if condition == nil || condition.Status != metav1.ConditionFalse || istio.Status.ObservedGeneration != istio.Generation {
		return nil
	}
	switch v1.Reason(condition.Reason) {
	case v1.ReasonVersionNotFound, v1.ReasonChartsUnavailable:
		return passage.NewReason(condition.Reason, "%s", condition.Message)
	}
	return nil
}

// isExactVersion tells a version from an alias, which has no patch number.
func isExactVersion(version string) bool { return strings.Count(version, ".") >= 2 }

// nameTooLong is set when the name of the revision would be too long.
func nameTooLong(istio *v1.Istio, version, name string) *passage.Reason {
	if len(name) <= v1.MaxRevisionNameLength {
		return nil
	}
	return passage.NewReason(v1.ReasonRevisionNameTooLong, "IstioRevision %s would have a name of %d characters, of at most %d: "+
		"use a spec.version that is shorter than %s, or a shorter name for Istio %s",
		name, len(name), v1.MaxRevisionNameLength, version, istio.Name)
}

func revisionStep(o Observed, want *v1.IstioRevision) passage.Step {
	step := passage.Step{
		Object: object(v1.IstioRevisionKind, want.Name),
		To:     want.Spec.Version,
		State:  passage.Pending,
	}
	have := o.revision(want.Name)
	if have == nil {
		step.Action = ActionCreate
		step.Reason = passage.Because(v1.ReasonRevisionMissing, "Istio %s asks for %s", o.Istio.Name, want.Spec.Version)
		return step
	}
	step.From = have.Spec.Version

	owner := metav1.GetControllerOf(have)
	switch {
	case isIstio(owner) && owner.Name == o.Istio.Name && owner.UID != o.Istio.UID:
		step.Action, step.State = ActionCreate, passage.Running
		step.Reason = passage.Because(v1.ReasonNameInDeletion,
			"IstioRevision %s belongs to a deleted Istio %s, and is created again when the old IstioRevision is gone", have.Name, owner.Name)
	case owner != nil && owner.UID != o.Istio.UID:
		step.Action, step.State = ActionCreate, passage.Failed
		step.Reason = passage.Because(v1.ReasonNameAlreadyExists,
			"IstioRevision %s belongs to %s %s; give one of the two another name", have.Name, owner.Kind, owner.Name)
	case !have.DeletionTimestamp.IsZero():
		step.Action, step.State = ActionCreate, passage.Running
		step.Reason = passage.Because(v1.ReasonNameInDeletion,
			"IstioRevision %s is being deleted, and is created again when the deletion has finished", have.Name)
	case owner == nil && !equality.Semantic.DeepEqual(have.Spec, want.Spec):
		step.Action, step.State = ActionCreate, passage.Failed
		step.Reason = passage.Because(v1.ReasonNameAlreadyExists,
			"IstioRevision %s exists, differs from what Istio %s asks for in %s, and was not made by it; "+
				"delete it, make it agree, or give the Istio another name",
			have.Name, o.Istio.Name, changedFields(have.Spec, want.Spec))
	case owner == nil:
		step.Action = ActionAdopt
		step.Reason = passage.Because(v1.ReasonRevisionOrphaned,
			"IstioRevision %s is as Istio %s asks, and has no owner", have.Name, o.Istio.Name)
	case have.Written.Version == "" && have.Spec.Version == want.Spec.Version && have.Spec.Namespace == want.Spec.Namespace:
		step.Action = ActionUpdate
		step.Reason = passage.Because(v1.ReasonRevisionDiffers,
			"another controller has written IstioRevision %s, and Fairlead goes on with it", have.Name)
	case !equality.Semantic.DeepEqual(have.Written, want.Spec):
		step.Action = ActionUpdate
		step.Reason = passage.Because(v1.ReasonRevisionDiffers,
			"Istio %s asks for another %s", o.Istio.Name, changedFields(have.Written, want.Spec))
	case !have.inactiveSince().IsZero():
		step.Action = ActionUpdate
		step.Reason = passage.Because(v1.ReasonRevisionDiffers,
			"IstioRevision %s is the active one again", have.Name)
	default:
		readiness := revisionReadiness(have.IstioRevision)
		step.Action, step.State, step.From = ActionRun, passage.Running, ""
		step.Reason = passage.Because(readiness.reason, "%s", readiness.message)
		if readiness.ready {
			step.State = passage.Done
		}
		if refused := refusedChart(have.IstioRevision); refused != nil {
			step.State, step.Reason = passage.Failed, *refused
		}
	}
	return step
}

// desiredRevision is the active revision as the Istio asks for it, with the exact version that this means today.
func desiredRevision(istio *v1.Istio, version string) *v1.IstioRevision {
	values := istio.Spec.Values.DeepCopy()
	if istio.Spec.Profile != "" {
		if values == nil {
			values = v1.Values{}
		}
		// Istio's charts know profiles themselves, by this value.
		values["profile"] = istio.Spec.Profile
	}
	return &v1.IstioRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            revisionName(istio, version),
			OwnerReferences: []metav1.OwnerReference{ownerReference(istio)},
		},
		Spec: v1.IstioRevisionSpec{
			Version:   version,
			Namespace: istio.Spec.Namespace,
			Values:    values,
		},
	}
}

func ownerReference(istio *v1.Istio) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1.GroupVersion.String(), Kind: v1.IstioKind, Name: istio.Name, UID: istio.UID, Controller: ptr.To(true),
	}
}

func revisionName(istio *v1.Istio, version string) string {
	if istio.Spec.UpdateStrategy.Type == v1.UpdateStrategyRevisionBased {
		return istio.Name + "-" + strings.ReplaceAll(version, ".", "-")
	}
	return istio.Name
}

// changedFields names the fields, not their contents: values can be long and confidential.
func changedFields(have, want v1.IstioRevisionSpec) string {
	var fields []string
	add := func(differ bool, field string) {
		if differ {
			fields = append(fields, field)
		}
	}
	add(have.Version != want.Version, "spec.version")
	add(have.Namespace != want.Namespace, "spec.namespace")
	add(!equality.Semantic.DeepEqual(have.Values, want.Values), "spec.values")
	return strings.Join(fields, ", ")
}

type readiness struct {
	ready   bool
	reason  v1.Reason
	message string
}

func revisionReadiness(revision *v1.IstioRevision) readiness {
	condition := meta.FindStatusCondition(revision.Status.Conditions, string(v1.ConditionReady))
	reconciled := meta.FindStatusCondition(revision.Status.Conditions, string(v1.ConditionReconciled))
	switch {
	case condition == nil:
		return readiness{reason: v1.ReasonIstiodNotReady, message: fmt.Sprintf(
			"IstioRevision %s is not reconciled yet", revision.Name)}
	case condition.ObservedGeneration < revision.Generation:
		return readiness{reason: v1.ReasonIstiodNotReady, message: fmt.Sprintf(
			"IstioRevision %s has changed and is not reconciled yet", revision.Name)}
	case condition.Status != metav1.ConditionTrue && reconciled != nil && reconciled.Status == metav1.ConditionFalse:
		// The reason that keeps it from being installed is more helpful.
		return readiness{reason: v1.Reason(reconciled.Reason), message: fmt.Sprintf(
			"IstioRevision %s: %s", revision.Name, reconciled.Message)}
	case condition.Status != metav1.ConditionTrue:
		return readiness{reason: v1.Reason(condition.Reason), message: fmt.Sprintf(
			"IstioRevision %s: %s", revision.Name, condition.Message)}
	}
	return readiness{ready: true, reason: v1.ReasonIstiodReady, message: fmt.Sprintf(
		"the control plane of IstioRevision %s serves", revision.Name)}
}

// refusedChart is why a revision is not installed from its chart as it is now, or nil. Its control plane may serve all the same.
func refusedChart(revision *v1.IstioRevision) *passage.Reason {
	reconciled := meta.FindStatusCondition(revision.Status.Conditions, string(v1.ConditionReconciled))
	if reconciled == nil || reconciled.Reason != string(v1.ReasonChartChanged) || reconciled.ObservedGeneration != revision.Generation {
		return nil
	}
	return passage.NewReason(v1.ReasonChartChanged, "IstioRevision %s: %s", revision.Name, reconciled.Message)
}

func object(kind, name string) passage.Object {
	return passage.Object{APIVersion: v1.GroupVersion.String(), Kind: kind, Name: name}
}
