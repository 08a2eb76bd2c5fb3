package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/forecast"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

var dataplanes = kumav1alpha1.GroupVersion.WithKind(kumav1alpha1.DataplaneKind).GroupKind()

// explainPolicies tells which policies apply to what a Dataplane calls, and why.
func explainPolicies(ctx context.Context, c *connect.Flags, out io.Writer, format render.Format, args []string, where zoneFlags) error {
	if err := where.validate(); err != nil {
		return err
	}
	cluster, err := c.Connect()
	if err != nil {
		return err
	}
	r, err := cluster.Resolve(args)
	if err != nil {
		return err
	}
	if r.Kind() != dataplanes {
		return console.UsageErrorf("--policies is about a Dataplane: `fairlead status dataplane NAME -n NAMESPACE --policies`")
	}
	var dataplane kumav1alpha1.Dataplane
	if err := cluster.Client.Get(ctx, r.Key, &dataplane); apierrors.IsNotFound(err) {
		return r.NotFound()
	} else if err != nil {
		return fmt.Errorf("get %s: %w", r, err)
	}
	world, err := loadMesh(ctx, cluster, desired.MeshOf(&dataplane), where)
	if err != nil {
		return err
	}
	policies := world.Explain(&dataplane)
	if encoded, err := format.Encode(out, policies); encoded || err != nil {
		return err
	}
	printPolicies(out, format, policies)
	return nil
}

func printPolicies(w io.Writer, format render.Format, policies forecast.Policies) {
	fmt.Fprintf(w, "Dataplane %s of Mesh %s calls %s.\n", policies.Dataplane, policies.Mesh, render.Count(len(policies.Destinations), "destination"))
	header := []string{"POLICY", "ENTRY", "APPLIES", "WHY"}
	var all [][]string
	var bare []string
	for _, d := range policies.Destinations {
		rows := decisionRows(d)
		if format != render.Wide && len(d.Policies) == 0 {
			bare = append(bare, d.Name)
		} else if format != render.Wide {
			fmt.Fprintf(w, "\n%s\n", d.Name)
			render.Table(w, format.Width(), header, rows)
		}
		for _, row := range rows {
			all = append(all, append([]string{d.Name}, row...))
		}
	}
	if format == render.Wide && len(all) > 0 {
		fmt.Fprintln(w)
		render.Table(w, 0, append([]string{"DESTINATION"}, header...), all)
	}
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
		rows = append(rows, []string{p.Kind + " " + p.Policy, fmt.Sprintf("to[%d]", p.Entry), yesOrNo(p.Applies), p.Why})
	}
	return rows
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
