package cli

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

func reportRevision(ctx context.Context, reader client.Reader, key client.ObjectKey, _ query) (account, error) {
	var revision v1.IstioRevision
	if err := reader.Get(ctx, key, &revision); err != nil {
		return account{}, fmt.Errorf("get IstioRevision %s: %w", key.Name, err)
	}
	users, err := usage.List(ctx, reader)
	if err != nil {
		return account{}, err
	}
	status := revision.Status
	return account{
		Plan: fromConditions(v1.IstioRevisionKind, &revision, passage.Step{Action: "install", To: revision.Spec.Version},
			status.Conditions, v1.ConditionReconciled, v1.ConditionReady),
		Generation:         revision.Generation,
		ObservedGeneration: status.ObservedGeneration,
		Conditions:         status.Conditions,
		References:         append([]usage.Reference{}, users.References(key.Name)...),
	}, nil
}

func reportTag(ctx context.Context, reader client.Reader, key client.ObjectKey, _ query) (account, error) {
	var tag v1.IstioRevisionTag
	if err := reader.Get(ctx, key, &tag); err != nil {
		return account{}, fmt.Errorf("get IstioRevisionTag %s: %w", key.Name, err)
	}
	users, err := usage.List(ctx, reader)
	if err != nil {
		return account{}, err
	}
	target, err := resolveTarget(ctx, reader, tag.Spec.TargetRef)
	if err != nil {
		return account{}, err
	}
	status := tag.Status
	return account{
		Plan:               planTag(&tag, target),
		Generation:         tag.Generation,
		ObservedGeneration: status.ObservedGeneration,
		Conditions:         status.Conditions,
		References:         append([]usage.Reference{}, users.TagReferences(key.Name)...),
	}, nil
}

// resolveTarget is the revision that a tag should point to, or nothing as long as there is none.
func resolveTarget(ctx context.Context, reader client.Reader, ref v1.TargetReference) (string, error) {
	if ref.Kind != v1.IstioKind {
		return ref.Name, nil
	}
	var istio v1.Istio
	if err := reader.Get(ctx, client.ObjectKey{Name: ref.Name}, &istio); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get Istio %s: %w", ref.Name, err)
	}
	return istio.Status.ActiveRevisionName, nil
}

func planTag(tag *v1.IstioRevisionTag, target string) passage.Plan {
	step := passage.Step{Action: "point", To: target}
	if tag.Status.IstioRevision != target {
		step.From = tag.Status.IstioRevision
	}
	plan := fromConditions(v1.IstioRevisionTagKind, tag, step, tag.Status.Conditions, v1.ConditionReconciled)
	if step := &plan.Steps[0]; step.State == passage.Done && step.From != "" {
		// The condition speaks of where the tag pointed before.
		step.State, step.Reason = passage.Running, notReported
	}
	return plan
}

// notReported is why a step is open that the operator has said nothing of.
var notReported = passage.Because(v1.ReasonReconcileError, "the operator has not reported on it")

// fromConditions is a plan as far as it can be read from conditions: one step, which is done when all of them are met.
func fromConditions(kind string, object metav1.Object, step passage.Step, conditions []metav1.Condition, met ...v1.ConditionType) passage.Plan {
	subject := passage.Object{APIVersion: v1.GroupVersion.String(), Kind: kind, Name: object.GetName()}
	plan := passage.Plan{Passage: v1.PassageRevision, Subject: subject, Target: step.To}
	if object.GetDeletionTimestamp().IsZero() {
		plan.Hold = installer.WhilePaused(kind, object)
	}
	step.Object, step.State = subject, passage.Done
	for _, wanted := range met {
		condition := meta.FindStatusCondition(conditions, string(wanted))
		switch {
		case condition == nil:
			step.State, step.Reason = passage.Running, notReported
		case condition.Status == metav1.ConditionTrue:
			step.Reason = passage.Because(condition.Reason, "%s", condition.Message)
			continue
		default:
			step.State = stateForReason(v1.Reason(condition.Reason))
			step.Reason = passage.Because(condition.Reason, "%s", condition.Message)
		}
		break
	}
	plan.Steps = []passage.Step{step}
	return plan
}

// stateForReason is how far a step is whose condition is not met for a reason.
func stateForReason(reason v1.Reason) passage.State {
	switch {
	case reason == v1.ReasonPaused:
		return passage.Pending
	case slices.Contains(userReasons, reason):
		return passage.Failed
	}
	return passage.Running
}

// userReasons are the reasons that nothing but a change by somebody makes go away.
var userReasons = []v1.Reason{
	v1.ReasonNameAlreadyExists, v1.ReasonRefNotFound, v1.ReasonVersionNotFound,
	v1.ReasonTemplateError, v1.ReasonRefused, v1.ReasonOwnedByOthers,
}
