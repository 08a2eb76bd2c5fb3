package materialize

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/manifest"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/internal/rollout/conversion"
	"github.com/fairlead/fairlead/internal/rollout/hash"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// plan is what the operator does about a Materialize.
type plan struct {
	render.PlanReport
	// Rollout is whether the Materialize rolls out, and why.
	Rollout *rollout.Forecast `json:"rollout,omitempty"`
}

// newPlan plans for the environment as it is, or with a proposed spec.
func (e environment) newPlan(proposed *v1alpha2.Materialize, now time.Time) *plan {
	after := e.Observed
	if proposed != nil {
		after = e.WithSpec(proposed)
	}
	return &plan{
		PlanReport: render.PlanReport{Plan: rollout.Plan(after, now), Note: e.note()},
		Rollout:    rollout.NewForecast(e.Observed, proposed, now),
	}
}

// note names the kinds that were left out.
func (e environment) note() string {
	if len(e.Unlisted) == 0 {
		return ""
	}
	return "Left out, because you may not list them: " + kindNames(e.Unlisted) + "."
}

func (p *plan) Print(w io.Writer, format render.Format) {
	printForecast(w, format, p.Rollout)
	printPlan(w, format, p.Plan)
	render.Note(w, p.Note)
}

func (p *plan) ExitError() error {
	switch err := p.PlanReport.ExitError(); {
	case p.Rollout.Obstacle != "":
		return console.ExitError{Code: console.ExitFailed}
	case err == nil && p.Rollout.HasChanges():
		return console.ExitError{Code: console.ExitUnfinished}
	default:
		return err
	}
}

func printForecast(w io.Writer, format render.Format, f *rollout.Forecast) {
	fmt.Fprintln(w, format.Fit(f.Verdict))
	render.Note(w, f.Obstacle)
	printChanges(w, format, f.Changes)
	fmt.Fprintln(w)
}

// printChanges shows the fields that roll out apart from the others.
func printChanges(w io.Writer, format render.Format, changes []hash.Change) {
	rows := map[bool][][]string{}
	for _, c := range changes {
		rows[c.RollsOut] = append(rows[c.RollsOut], []string{c.Field, render.OrDash(c.From), render.OrDash(c.To)})
	}
	render.PrintRows(w, format, []string{"ROLLS OUT", "FROM", "TO"}, rows[true])
	render.PrintRows(w, format, []string{"APPLIED AT ONCE", "FROM", "TO"}, rows[false])
}

func printPlan(w io.Writer, format render.Format, p passage.Plan) {
	changes, failures := len(render.Pending(p)), len(p.Failures())
	if failures > 0 && changes > 0 {
		render.PrintHold(w, p)
		fmt.Fprintf(w, "%s to %s: %s, and %d that cannot be made.\n", p.Subject, p.Target, render.Count(changes, "change"), failures)
	} else {
		render.PrintHeadline(w, p)
	}
	if open := render.Open(p.Steps); format == render.Wide {
		render.PrintSteps(w, format, open)
	} else {
		// Without from and to: most steps of a rollout have neither, and some a hash.
		render.PrintList(w, format, []string{"ACTION", "OBJECT", "STATE", "WHY"}, open, func(s passage.Step) []string {
			return []string{string(s.Action), s.Object.String(), render.StateText(s), s.Reason.Message}
		})
	}
}

func (k *Kind) Plan(ctx context.Context, r connect.Resource) (render.Plan, error) {
	e, err := observe(ctx, r.Cluster.Client, r)
	if err != nil {
		return nil, err
	}
	e.NoCertManager = !hasCertManager(r.Cluster)
	return e.newPlan(nil, time.Now()), nil
}

func (k *Kind) PlanManifest(ctx context.Context, r connect.Resource, m manifest.Manifest, manager string) (render.Plan, error) {
	object, err := manifest.DryRunApply(ctx, r, m, manager)
	if err != nil {
		return nil, err
	}
	proposed, err := materializeOf(object)
	if err != nil {
		return nil, err
	}
	e, err := observe(ctx, r.Cluster.Client, r)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, err
	}
	if err := e.ReadServiceAccount(ctx, proposed, rollout.NewReader(r.Cluster.Client)); err != nil {
		return nil, err
	}
	if missing {
		e.Observed = e.WithSpec(proposed)
		proposed = nil
	}
	e.NoCertManager = !hasCertManager(r.Cluster)
	return e.newPlan(proposed, time.Now()), nil
}

// hasCertManager tells whether the API server serves Certificates, and holds if that is unknown.
func hasCertManager(c *connect.Cluster) bool {
	_, err := c.Mapper.RESTMapping(objects.KindCertificate.GroupKind(), objects.KindCertificate.Version)
	return !meta.IsNoMatchError(err)
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
