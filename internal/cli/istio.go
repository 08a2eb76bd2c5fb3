package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/istio"
	"github.com/fairlead/fairlead/internal/revision/workload"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

func reportIstio(ctx context.Context, reader client.Reader, key client.ObjectKey, q query) (account, error) {
	fleet, users, err := inventory.List(ctx, reader)
	if err != nil {
		return account{}, err
	}
	return reportIstioFrom(ctx, reader, key, q, users, fleet.Snapshot())
}

// reportIstioFrom tells from what is known about who uses what, and about all workloads.
func reportIstioFrom(ctx context.Context, reader client.Reader, key client.ObjectKey, q query, users istio.Users, picture inventory.Snapshot,
) (account, error) {
	known := versions(ctx, q)
	observed, err := istio.Observe(ctx, reader, key.Name, known, users)
	if err != nil {
		return account{}, err
	}
	if q.Version != nil {
		observed.Istio.Spec.Version = *q.Version
	}
	result := account{
		Plan:               istio.Plan(observed, time.Now()),
		Generation:         observed.Istio.Generation,
		ObservedGeneration: observed.Istio.Status.ObservedGeneration,
		Conditions:         observed.Istio.Status.Conditions,
	}
	if !q.hasCharts() && q.Version == nil {
		result.useReportedChartError(observed.Istio)
	}
	moving, err := workload.Observe(ctx, reader, key.Name, picture)
	if err != nil {
		return account{}, err
	}
	result.Workloads = planWorkloads(moving, result.Plan, time.Now())
	markTagMoves(result.Plan, observed.Istio.Status.ActiveRevisionName)
	if known.Err != nil && q.Version != nil && result.Plan.Target != "" {
		result.Note = fmt.Sprintf("Whether there are charts of %s was not checked: give --chart-dir or --chart-repository as the operator has it.",
			*q.Version)
	}
	return result, nil
}

// useReportedChartError takes the operator's word for what cannot be known without its charts: that there are none.
func (a *account) useReportedChartError(subject *v1.Istio) {
	condition := meta.FindStatusCondition(subject.Status.Conditions, string(v1.ConditionReconciled))
	if condition == nil || condition.Status != metav1.ConditionFalse || subject.Status.ObservedGeneration != subject.Generation {
		return
	}
	switch v1.Reason(condition.Reason) {
	case v1.ReasonVersionNotFound, v1.ReasonChartsUnavailable:
		a.Plan.Target = ""
		a.Plan.Steps = []passage.Step{{
			Object: a.Plan.Subject, Action: istio.ActionResolve, From: subject.Spec.Version, State: passage.Failed,
			Reason: passage.Because(condition.Reason, "%s", condition.Message),
		}}
	}
}

// markTagMoves counts a tag that will follow to another revision among the changes. The operator does not: tags move
// themselves, and are on their way from when the target is the active revision.
func markTagMoves(plan passage.Plan, active string) {
	for i := range plan.Steps {
		step := &plan.Steps[i]
		if step.Action == istio.ActionMove && step.Reason.Code == passage.Code(v1.ReasonFollowsIstio) && step.To != active {
			step.State = passage.Pending
		}
	}
}

// versions that the operator can install. Only one who knows where it has its charts from can tell.
func versions(ctx context.Context, q query) istio.Charts {
	if !q.hasCharts() {
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
