package mesh

import (
	"context"
	"fmt"
	"io"
	"strings"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/forecast"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

var dataplanes = kumav1alpha1.GroupVersion.WithKind(kumav1alpha1.DataplaneKind).GroupKind()

// PartHint is the command for a Dataplane.
func (*Kind) PartHint(r connect.Resource) string {
	if r.Kind() != dataplanes {
		return ""
	}
	return fmt.Sprintf("fairlead status dataplane %s -n NAMESPACE --policies", r.Key.Name)
}

// ExplainPolicies tells which policies apply to what a Dataplane calls, and why.
func (k *Kind) ExplainPolicies(ctx context.Context, r connect.Resource, out io.Writer, format render.Format) error {
	if r.Kind() != dataplanes {
		return console.UsageErrorf("--policies is about a Dataplane: `fairlead status dataplane NAME -n NAMESPACE --policies`")
	}
	var dataplane kumav1alpha1.Dataplane
	if err := r.Get(ctx, r.Cluster.Client, &dataplane); err != nil {
		return err
	}
	world, err := forecast.Load(ctx, r.Cluster.Client, desired.MeshOf(&dataplane), k.zone)
	if err != nil {
		return err
	}
	policies := world.Explain(&dataplane)
	return format.Print(out, policies, func() { printPolicies(out, format, policies) })
}

func printPolicies(w io.Writer, format render.Format, policies forecast.Policies) {
	fmt.Fprintf(w, "Dataplane %s of Mesh %s calls %s.\n", policies.Dataplane, policies.Mesh, render.Count(len(policies.Destinations), "destination"))
	header := []string{"POLICY", "ENTRY", "APPLIES", "WHY"}
	var all [][]string
	var bare []string
	for _, d := range policies.Destinations {
		switch rows := decisionRows(d); {
		case format == render.Wide:
			for _, row := range rows {
				all = append(all, append([]string{d.Name}, row...))
			}
		case len(d.Policies) == 0:
			bare = append(bare, d.Name)
		default:
			fmt.Fprintf(w, "\n%s\n", d.Name)
			render.Table(w, format.Width(), header, rows)
		}
	}
	render.PrintRows(w, format, append([]string{"DESTINATION"}, header...), all)
	if len(bare) > 0 {
		render.Note(w, "No policy of the mesh is for "+strings.Join(bare, ", ")+".")
	}
	for _, note := range policies.Notes {
		render.Note(w, note)
	}
}

func decisionRows(d forecast.Destination) [][]string {
	if len(d.Policies) == 0 {
		return [][]string{{"-", "-", "-", "no policy of the mesh is for it"}}
	}
	var rows [][]string
	for _, p := range d.Policies {
		rows = append(rows, []string{p.Kind + " " + p.Policy, fmt.Sprintf("to[%d]", p.Entry), render.YesOrNo(p.Applies), p.Why})
	}
	return rows
}
