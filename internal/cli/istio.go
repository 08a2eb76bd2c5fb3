package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/charts"
	"github.com/fairlead/fairlead/internal/revision/istio"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

func accountOfIstio(ctx context.Context, reader client.Reader, key client.ObjectKey, q question) (account, error) {
	users, err := usage.Survey(ctx, reader)
	if err != nil {
		return account{}, err
	}
	known := versions(ctx, q)
	observed, err := istio.Observe(ctx, reader, key.Name, known, users)
	if err != nil {
		return account{}, err
	}
	if q.Version != nil {
		observed.Istio.Spec.Version = *q.Version
	}
	told := account{
		Plan:               istio.Plan(observed, time.Now()),
		Generation:         observed.Istio.Generation,
		ObservedGeneration: observed.Istio.Status.ObservedGeneration,
		Conditions:         observed.Istio.Status.Conditions,
	}
	if !q.chartsGiven() && q.Version == nil {
		told.believe(observed.Istio)
	}
	if known.Err != nil && q.Version != nil && told.Plan.Target != "" {
		told.Note = fmt.Sprintf("Whether there are charts of %s was not checked: give --chart-dir or --chart-repository as the operator has it.",
			*q.Version)
	}
	return told, nil
}

// believe takes the operator's word for what cannot be known without its charts: that there are none.
func (a *account) believe(istio *v1.Istio) {
	condition := meta.FindStatusCondition(istio.Status.Conditions, string(v1.ConditionReconciled))
	if condition == nil || condition.Status != metav1.ConditionFalse || istio.Status.ObservedGeneration != istio.Generation {
		return
	}
	switch v1.Reason(condition.Reason) {
	case v1.ReasonVersionNotFound, v1.ReasonChartsUnavailable:
		a.Plan.Target = ""
		a.Plan.Steps = []passage.Step{{
			Object: a.Plan.Subject, Action: resolve, From: istio.Spec.Version, State: passage.Failed,
			Reason: passage.Because(condition.Reason, "%s", condition.Message),
		}}
	}
}

// versions that the operator can install. Only one who knows where it has its charts from can tell.
func versions(ctx context.Context, q question) istio.Charts {
	if !q.chartsGiven() {
		return istio.Charts{Err: errors.New(
			"which versions there are is not known here; give --chart-dir or --chart-repository as the operator has it")}
	}
	source, err := charts.New(q.Charts)
	if err != nil {
		return istio.Charts{Err: err}
	}
	known, err := source.Versions(ctx)
	return istio.Charts{Versions: known, Err: err}
}

func accountOfRevision(ctx context.Context, reader client.Reader, key client.ObjectKey, _ question) (account, error) {
	var revision v1.IstioRevision
	if err := reader.Get(ctx, key, &revision); err != nil {
		return account{}, fmt.Errorf("get IstioRevision %s: %w", key.Name, err)
	}
	users, err := usage.Survey(ctx, reader)
	if err != nil {
		return account{}, err
	}
	status := revision.Status
	return account{
		Plan: told(v1.IstioRevisionKind, revision.ObjectMeta, revision.Spec.Version, "install", status.Conditions,
			v1.ConditionReconciled, v1.ConditionReady),
		Generation:         revision.Generation,
		ObservedGeneration: status.ObservedGeneration,
		Conditions:         status.Conditions,
		References:         append([]usage.Reference{}, users.References(key.Name)...),
	}, nil
}

func accountOfTag(ctx context.Context, reader client.Reader, key client.ObjectKey, _ question) (account, error) {
	var tag v1.IstioRevisionTag
	if err := reader.Get(ctx, key, &tag); err != nil {
		return account{}, fmt.Errorf("get IstioRevisionTag %s: %w", key.Name, err)
	}
	users, err := usage.Survey(ctx, reader)
	if err != nil {
		return account{}, err
	}
	status := tag.Status
	return account{
		Plan: told(v1.IstioRevisionTagKind, tag.ObjectMeta, status.IstioRevision, "point", status.Conditions,
			v1.ConditionReconciled),
		Generation:         tag.Generation,
		ObservedGeneration: status.ObservedGeneration,
		Conditions:         status.Conditions,
		References:         append([]usage.Reference{}, users.TagReferences(key.Name)...),
	}, nil
}

// told is a plan as far as it can be read from conditions: one step, which is done when all of them are met.
func told(kind string, object metav1.ObjectMeta, target string, action passage.Action, conditions []metav1.Condition,
	met ...v1.ConditionType,
) passage.Plan {
	subject := passage.Object{APIVersion: v1.GroupVersion.String(), Kind: kind, Name: object.Name}
	step := passage.Step{Object: subject, Action: action, To: target, State: passage.Done}
	for _, wanted := range met {
		condition := meta.FindStatusCondition(conditions, string(wanted))
		switch {
		case condition == nil:
			step.State = passage.Running
			step.Reason = passage.Because(v1.ReasonReconcileError, "the operator has not reported on it")
		case condition.Status == metav1.ConditionTrue:
			step.Reason = passage.Because(condition.Reason, "%s", condition.Message)
			continue
		default:
			step.State = passage.Running
			if slices.Contains(needPeople, v1.Reason(condition.Reason)) {
				step.State = passage.Failed
			}
			step.Reason = passage.Because(condition.Reason, "%s", condition.Message)
		}
		break
	}
	return passage.Plan{Passage: v1.PassageRevision, Subject: subject, Target: target, Steps: []passage.Step{step}}
}

// resolve is the step of finding the exact version.
const resolve = istio.ActionResolve

// needPeople are the reasons that nothing but a change by somebody makes go away.
var needPeople = []v1.Reason{
	v1.ReasonNameAlreadyExists, v1.ReasonRefNotFound, v1.ReasonVersionNotFound,
	v1.ReasonTemplateError, v1.ReasonRefused, v1.ReasonOwnedByOthers,
}
