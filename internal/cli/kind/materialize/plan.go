package materialize

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/manifest"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/internal/rollout/conversion"
)

// plan is what the operator does about a Materialize.
type plan struct {
	render.PlanReport
	// Rollout is whether the Materialize rolls out, and why.
	Rollout *rolloutDecision `json:"rollout,omitempty"`
}

// newPlan plans for the environment as it is, or with another spec.
func (e environment) newPlan(proposed *v1alpha2.Materialize, now time.Time) (*plan, error) {
	steps, err := e.plan(proposed, now)
	if err != nil {
		return nil, err
	}
	p := &plan{PlanReport: render.PlanReport{Plan: steps, Note: e.note()}, Rollout: decideRollout(e.Observed, proposed, now)}
	if e.noCertManager {
		p.failCertificates(e.Materialize, proposed)
	}
	return p, nil
}

func (e environment) plan(proposed *v1alpha2.Materialize, now time.Time) (passage.Plan, error) {
	after := e.Observed
	if proposed != nil {
		var err error
		if after, err = e.WithSpec(proposed); err != nil {
			return passage.Plan{}, err
		}
	}
	p := rollout.Plan(after, now)
	p.Steps = slices.DeleteFunc(p.Steps, func(s passage.Step) bool {
		return slices.Contains(e.forbidden, schema.FromAPIVersionAndKind(s.Object.APIVersion, s.Object.Kind))
	})
	if len(p.Steps) == 0 && after.Hash == after.Summary(now).Completed {
		p.Steps = []passage.Step{{
			Object: p.Subject, Action: rollout.ActionComplete, To: p.Target, State: passage.Done,
			Reason: passage.Because(v1alpha2.ReasonApplied, "the active generation serves the current spec"),
		}}
	}
	return p, nil
}

// note names the kinds that were left out.
func (e environment) note() string {
	if len(e.forbidden) == 0 {
		return ""
	}
	return "Left out, because you may not list them: " + kindNames(e.forbidden) + "."
}

func (p *plan) Print(w io.Writer, format render.Format) {
	printDecision(w, format, p.Rollout)
	printPlan(w, format, p.Plan)
	render.Note(w, p.Note)
}

func (p *plan) ExitError() error {
	switch err := p.PlanReport.ExitError(); {
	case p.Rollout.Obstacle != "":
		return console.ExitError{Code: console.ExitFailed}
	case err == nil && p.Rollout.hasChanges():
		return console.ExitError{Code: console.ExitUnfinished}
	default:
		return err
	}
}

func printPlan(w io.Writer, format render.Format, p passage.Plan) {
	changes, failures := len(render.Pending(p)), len(p.Failures())
	if format == render.Wide && (failures == 0 || changes == 0) {
		render.PrintPlan(w, format, p)
		return
	}
	switch {
	case failures > 0 && changes > 0:
		render.PrintHold(w, p)
		fmt.Fprintf(w, "%s to %s: %s, and %d that cannot be made.\n", p.Subject, p.Target, render.Count(changes, "change"), failures)
	case failures > 0:
		render.PrintHold(w, p)
		fmt.Fprintf(w, "%s cannot go on.\n", p.Subject)
	default:
		render.PrintChanges(w, p)
	}
	switch open := render.Open(p.Steps); {
	case len(open) == 0:
	case format == render.Wide:
		fmt.Fprintln(w)
		render.PrintSteps(w, format, open)
	default:
		fmt.Fprintln(w)
		printActions(w, format, open)
	}
}

// printActions leaves out from what to what: most steps of a rollout have neither, and some a hash.
func printActions(w io.Writer, format render.Format, steps []passage.Step) {
	var rows [][]string
	for _, s := range steps {
		rows = append(rows, []string{string(s.Action), s.Object.String(), render.StateText(s), s.Reason.Message})
	}
	render.Table(w, format.Width(), []string{"ACTION", "OBJECT", "STATE", "WHY"}, rows)
}

func (k *Kind) Plan(ctx context.Context, c *connect.Cluster, r connect.Resource) (render.Plan, error) {
	e, err := getEnvironment(ctx, c.Client, r.Key)
	if err != nil {
		return nil, r.NotFoundOr(err)
	}
	e.noCertManager = !hasCertManager(c)
	return e.newPlan(nil, time.Now())
}

func (k *Kind) PlanManifest(ctx context.Context, c *connect.Cluster, r connect.Resource, m manifest.Manifest, manager string) (render.Plan, error) {
	object, err := manifest.DryRunApply(ctx, c, r, m, manager)
	if err != nil {
		return nil, err
	}
	proposed, err := materializeOf(object)
	if err != nil {
		return nil, err
	}
	e, err := getEnvironment(ctx, c.Client, r.Key)
	if apierrors.IsNotFound(err) {
		e, err = environment{}, nil
		e.Observed, err = (rollout.Observed{}).WithSpec(proposed)
		proposed = nil
	}
	if err != nil {
		return nil, err
	}
	e.noCertManager = !hasCertManager(c)
	return e.newPlan(proposed, time.Now())
}

// materializeOf reads what the API server made of a manifest, in whichever version.
func materializeOf(object *unstructured.Unstructured) (*v1alpha2.Materialize, error) {
	content, err := conversion.Convert(object.Object, v1alpha2.GroupVersion.String())
	if err != nil {
		return nil, err
	}
	m := &v1alpha2.Materialize{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, m); err != nil {
		return nil, fmt.Errorf("read Materialize %s: %w", object.GetName(), err)
	}
	return m, nil
}
