package policy

import (
	"context"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/forecast"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// Abort asks the operator to release all that a policy has taken over, and to restore what that was before.
func (*Kind) Abort(ctx context.Context, r connect.Resource) (kind.Change, error) {
	object, err := getPolicy(ctx, r.Cluster.Client, r)
	if err != nil {
		return kind.Change{}, err
	}
	if object.GetAnnotations()[model.AnnotationAborted] == "true" {
		return kind.Change{Noop: fmt.Sprintf("%s was aborted already", r)}, nil
	}
	impact, err := forecast.AbortImpactOf(ctx, r.Cluster.Client, policy.Of(object))
	if err != nil {
		return kind.Change{}, err
	}
	return kind.Change{
		Show:     func(w io.Writer) { printAbortImpact(w, r, impact) },
		Question: "Release the objects and restore their originals?",
		Apply:    func(ctx context.Context) error { return r.Annotate(ctx, model.AnnotationAborted, "true") },
		Done:     fmt.Sprintf("%s aborted: its originals are being restored\nTo see the progress: fairlead watch %s --wait", r, policyArgs(r.Key)),
	}, nil
}

// policyArgs is a policy as it is typed after a command.
func policyArgs(key client.ObjectKey) string {
	if key.Namespace == "" {
		return "cpp " + key.Name
	}
	return "pp " + key.Name + " -n " + key.Namespace
}

// printAbortImpact shows what aborting a policy does, and to which objects.
func printAbortImpact(w io.Writer, r connect.Resource, impact forecast.AbortImpact) {
	lines := []string{fmt.Sprintf("%s releases %s in %s.", r, render.Count(impact.Objects(), "object"), render.Count(impact.Clusters(), "cluster"))}
	switch {
	case len(impact.Restored) > 0:
		lines = append(lines, fmt.Sprintf("%d of them changed when they were taken over; their originals are restored, which may restart pods.", len(impact.Restored)))
	case impact.Objects() > 0:
		lines = append(lines, "None of them changed when they were taken over: all stay as they are.")
	}
	lines = append(lines, "Objects that Fairlead has created stay. The policy takes nothing over, until annotation "+model.AnnotationAborted+" is removed.")
	render.Paragraph(w, strings.Join(lines, " "))
	restored, moreRestored := render.Limit(render.Text, impact.Restored)
	released, moreReleased := render.Limit(render.Text, impact.Released)
	var rows [][]string
	for _, o := range restored {
		rows = append(rows, []string{o.Cluster, string(model.ActionRestore), render.NameInCluster(o), "the takeover changed the object"})
	}
	for _, o := range released {
		rows = append(rows, []string{o.Cluster, string(model.ActionOrphan), render.NameInCluster(o), "stays as it is, without the labels of the hub"})
	}
	render.PrintRows(w, render.Text, []string{"CLUSTER", "ACTION", "OBJECT", "WHY"}, rows)
	if moreRestored+moreReleased > 0 {
		fmt.Fprintf(w, "... and %d more to restore, %d more to orphan\n", moreRestored, moreReleased)
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
	}
}
