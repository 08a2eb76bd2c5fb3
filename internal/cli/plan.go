package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/manifest"
	"github.com/fairlead/fairlead/internal/cli/render"
)

func newPlanCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var format render.Format
	var filename, manager string
	kinds := newKinds()
	cmd := &cobra.Command{
		Use:   "plan TYPE NAME",
		Short: "Show what the operator does about a resource, without doing it",
		Long: `Show what the operator does about a resource, without doing it. The operator makes the same plan from the same state of
the cluster.

Istio: the revisions, tags and workloads that change. --version plans for another version.
IstioRevision, IstioRevisionTag: planned with their Istio; they have no plan of their own.
Materialize: whether there is a rollout, and which fields cause it.
PropagationPolicy, ClusterPropagationPolicy: for each object in each cluster, the action, the fields that change, and whether
pods restart. The clusters dry-run each write.
Mesh: what --mode changes for each consumer: its destinations, the zones that answer, and the policies that apply.

With -f, a Materialize or a policy is planned as if that manifest were applied, a policy together with the resources in the
same file.

Exit codes: 0 nothing to do, 3 there are changes, 1 the plan has failures.`,
		Example: `  fairlead plan istio default
  fairlead plan istio default --version v1.26.0
  fairlead plan mzs production -n shop -f production.yaml
  fairlead plan pp deployments-pp -n shop
  fairlead plan mesh default --mode Everywhere
  fairlead plan istio default -o json`,
		Args: connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := kinds.ValidateFlags(); err != nil {
				return err
			}
			r, k, err := resolve(c, kinds, args)
			if err != nil {
				return err
			}
			planner, ok := k.(kind.Planner)
			if !ok {
				return noPlanError(k, r.Kind().Kind, r.Key.Name)
			}
			if flag, owner := kind.ForeignFlag(cmd.Flags(), r.Kind().Kind); flag != "" {
				return console.UsageErrorf("--%s is about %s, and not about %s", flag, withArticle(owner), withArticle(r.Kind().Kind))
			}
			var plan render.Plan
			if filename == "" {
				plan, err = planner.Plan(cmd.Context(), r)
			} else {
				p, ok := k.(kind.ManifestPlanner)
				if !ok {
					return console.UsageErrorf("-f is about %s: %s", kind.Names[kind.ManifestPlanner](kinds), kind.Hint(k, "plan -f"))
				}
				var from manifest.Manifest
				if from, err = manifest.Read(streams.In, filename, r.Kind(), r.Key.Name); err != nil {
					return err
				}
				plan, err = p.PlanManifest(cmd.Context(), r, from, manager)
			}
			if err != nil {
				return err
			}
			if err := format.Print(streams.Out, plan, func() { plan.Print(streams.Out, format) }); err != nil {
				return err
			}
			return plan.ExitError()
		},
	}
	format.AddFlag(cmd, render.JSON, render.YAML, render.Wide)
	cmd.Flags().StringVarP(&filename, "filename", "f", "", "plan as if this manifest of a Materialize or a policy were applied (-: standard input)")
	cmd.Flags().StringVar(&manager, "field-manager", "", "with -f: field manager of the server-side apply (default: the last one)")
	kinds.AddFlags(cmd)
	return cmd
}

// noPlanError is the error for a kind that has no plan of its own.
func noPlanError(k kind.Kind, kindName, name string) error {
	return console.UsageErrorf("there is no plan to show for %s: %s; `fairlead status %s %s` shows its progress",
		kindName, kind.Hint(k, "plan"), strings.ToLower(kindName), name)
}

func withArticle(noun string) string {
	if strings.ContainsAny(noun[:1], "AEIOU") {
		return "an " + noun
	}
	return "a " + noun
}
