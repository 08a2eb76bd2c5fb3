package policy

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/manifest"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
)

// plan is what becomes of every object that a policy selects.
type plan struct {
	render.PlanReport
	Adoption *forecastReport `json:"adoption,omitempty"`
	forecast forecast.Forecast
}

func (p *plan) Print(w io.Writer, format render.Format) { printForecast(w, format, p.forecast) }

func (k *Kind) Plan(ctx context.Context, r connect.Resource) (render.Plan, error) {
	object, err := getPolicy(ctx, r.Cluster.Client, r)
	if err != nil {
		return nil, err
	}
	return predict(ctx, r.Cluster, policy.Of(object))
}

// PlanManifest plans with the resources beside the policy as if the hub had them.
func (k *Kind) PlanManifest(ctx context.Context, r connect.Resource, m manifest.Manifest, manager string) (render.Plan, error) {
	proposed, err := manifest.DryRunApply(ctx, r, m, manager)
	if err != nil {
		return nil, err
	}
	object := newPolicy(r.Key)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(proposed.Object, object); err != nil {
		return nil, fmt.Errorf("read %s: %w", r, err)
	}
	for _, template := range m.Others {
		namespaced, err := r.Cluster.Client.IsObjectNamespaced(template)
		if err != nil {
			return nil, fmt.Errorf("read %s: %s %s: %w", m.Source, template.GetKind(), template.GetName(), err)
		}
		if namespaced && template.GetNamespace() == "" {
			template.SetNamespace(r.Cluster.Namespace)
		}
	}
	return predict(ctx, r.Cluster, policy.Of(object), m.Others...)
}

func predict(ctx context.Context, c *connect.Cluster, p *policy.Policy, templates ...*unstructured.Unstructured) (render.Plan, error) {
	predicted, err := forecast.Predict(ctx, c.Client, p, templates...)
	if err != nil {
		return nil, err
	}
	return &plan{render.PlanReport{Plan: predicted.Plan()}, newForecastReport(predicted), predicted}, nil
}

// forecastReport is what `plan` prints of a policy for programs.
type forecastReport struct {
	Totals  forecast.Totals    `json:"totals"`
	Objects []forecast.Outcome `json:"objects"`
	// Elsewhere counts resources that the policy selects, by the other policy that takes them.
	Elsewhere map[string]int `json:"elsewhere,omitempty"`
	// Deferred are resources for which the policy takes effect only when their templates change.
	Deferred  []forecast.Deferral `json:"deferred,omitempty"`
	Obstacles []passage.Step      `json:"obstacles,omitempty"`
	Notes     []string            `json:"notes,omitempty"`
}

func newForecastReport(f forecast.Forecast) *forecastReport {
	r := &forecastReport{Totals: f.Totals(), Objects: append([]forecast.Outcome{}, f.Outcomes...), Deferred: f.Deferred, Obstacles: f.Obstacles, Notes: f.Notes, Elsewhere: map[string]int{}}
	for key, n := range f.Elsewhere {
		r.Elsewhere[strings.TrimPrefix(key.String(), "/")] = n
	}
	return r
}

func printForecast(w io.Writer, format render.Format, f forecast.Forecast) {
	totals := f.Totals()
	render.Paragraph(w, summarizeForecast(f, totals))
	if f.Hold != nil {
		fmt.Fprintf(w, "Held: %s\n", strings.Join(render.Wrap(f.Hold.Message, render.Columns), "\n"))
	}
	var rows [][]string
	alike, more := 0, 0
	for _, o := range f.Outcomes {
		if format != render.Wide && hasNoFieldChanges(o) {
			if o.Action == model.ActionNone {
				continue
			}
			if alike++; alike > render.MaxRows {
				more++
				continue
			}
		}
		rows = append(rows, []string{o.Object.Cluster, string(o.Action), render.NameInCluster(o.Object), podsText(o), o.Reason.Message})
	}
	render.PrintRows(w, format, []string{"CLUSTER", "ACTION", "OBJECT", "PODS", "WHY"}, rows)
	if more > 0 {
		fmt.Fprintf(w, "... and %d more in which no field changes: -o wide shows all\n", more)
	}
	for _, o := range f.Outcomes {
		printDifferences(w, format, o)
	}
	for _, key := range slices.SortedFunc(maps.Keys(f.Elsewhere), func(a, b model.PolicyKey) int { return strings.Compare(a.String(), b.String()) }) {
		render.Note(w, fmt.Sprintf("%s that it selects: policy %s takes them.", render.Count(f.Elsewhere[key], "resource"), strings.TrimPrefix(key.String(), "/")))
	}
	printDeferred(w, format, f.Deferred)
	for _, o := range f.Obstacles {
		render.Note(w, o.Reason.Message)
	}
	for _, note := range f.Notes {
		render.Note(w, note)
	}
}

// printDeferred lists the resources for which the policy takes effect only when their templates change.
func printDeferred(w io.Writer, format render.Format, all []forecast.Deferral) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w)
	shown, more := render.Limit(format, all)
	render.PrintList(w, format, []string{"DEFERRED", "WHY"}, shown, func(d forecast.Deferral) []string {
		return []string{render.NameInCluster(d.Object), d.Reason.Message}
	})
	render.PrintMore(w, "", more)
}

// hasNoFieldChanges holds for an object of which there is nothing to tell but that it is there: a thousand of them say no more than a
// few.
func hasNoFieldChanges(o forecast.Outcome) bool {
	switch o.Action {
	case model.ActionNone, model.ActionTakeOver, model.ActionUpdate:
		return !o.Failed && !o.Restarts && len(o.Differences) == 0 && o.Note == ""
	}
	return false
}

// summarizeForecast is the forecast in a few words.
func summarizeForecast(f forecast.Forecast, totals forecast.Totals) string {
	if len(f.Outcomes) == 0 {
		return fmt.Sprintf("%s takes nothing to any cluster.", f.Subject)
	}
	clusters := map[string]bool{}
	for _, o := range f.Outcomes {
		clusters[o.Object.Cluster] = true
	}
	texts := []struct {
		action passage.Action
		words  string
	}{
		{model.ActionCreate, "to create"}, {model.ActionTakeOver, "to take over"}, {model.ActionUpdate, "to update"},
		{model.ActionDelete, "to delete"}, {model.ActionOrphan, "to orphan"}, {model.ActionWait, "being deleted"},
		{model.ActionNone, "unchanged"}, {model.ActionConflict, "in conflict"}, {model.ActionUnknown, "unknown"},
	}
	var parts []string
	for _, s := range texts {
		if n := totals.Actions[s.action]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.words))
		}
	}
	line := fmt.Sprintf("%s in %s: %s.", f.Subject, render.Count(len(clusters), "cluster"), strings.Join(parts, ", "))
	switch {
	case totals.Workloads > 0:
		line += fmt.Sprintf(" %s of %s restart.", render.Count(int(totals.Pods), "pod"), render.Count(totals.Workloads, "workload"))
	case totals.Actions[model.ActionUnknown] > 0:
		line += " No pod restarts, as far as is known."
	default:
		line += " No pod restarts."
	}
	if totals.PodsDeleted > 0 {
		line = strings.TrimSuffix(line, " No pod restarts.")
		line += fmt.Sprintf(" %s with what is deleted.", podsDeleted(totals.PodsDeleted))
	}
	if totals.Failed > 0 {
		line += fmt.Sprintf(" %d of %s cannot be applied.", totals.Failed, render.Count(len(f.Outcomes), "object"))
	}
	return line
}

func podsDeleted(pods int64) string {
	if pods == 1 {
		return "1 pod goes"
	}
	return fmt.Sprintf("%d pods go", pods)
}

func podsText(o forecast.Outcome) string {
	switch {
	case o.Deleted:
		return fmt.Sprintf("%d go", o.Pods)
	case o.Restarts:
		return fmt.Sprintf("%d restart", o.Pods)
	case o.Pods > 0:
		return fmt.Sprintf("%d stay", o.Pods)
	}
	return "-"
}

// printDifferences tells what changes in an object, field by field.
func printDifferences(w io.Writer, format render.Format, o forecast.Outcome) {
	if len(o.Differences) == 0 && o.Note == "" {
		return
	}
	title := o.Object.String()
	if o.Note != "" {
		title += ": " + o.Note
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for _, d := range o.Differences {
		from, to := d.From, d.To
		if width := format.Width(); width > 0 {
			from, to = render.Cut(from, width), render.Cut(to, width)
		}
		switch {
		case d.From == "":
			fmt.Fprintf(w, "  + %s: %s\n", d.Field, to)
		case d.To == "":
			fmt.Fprintf(w, "  - %s: %s\n", d.Field, from)
		default:
			fmt.Fprintf(w, "  ~ %s: %s -> %s\n", d.Field, from, to)
		}
	}
}
