package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	var firstFlags map[kind.Kind]string
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
			if err := validatePlanFlags(kinds); err != nil {
				return err
			}
			cluster, r, k, err := resolve(c, kinds, args)
			if err != nil {
				return err
			}
			name := r.Kind().Kind
			planner, ok := k.(kind.Planner)
			if !ok {
				return noPlanError(k, name, r.Key.Name)
			}
			if err := checkPlanFlags(cmd.Flags(), name); err != nil {
				return err
			}
			plan := planner.Plan
			if filename != "" {
				p, ok := k.(kind.ManifestPlanner)
				if !ok {
					return console.UsageErrorf("-f is about %s: %s is planned with --%s", kind.Names[kind.ManifestPlanner](kinds), withArticle(name), firstFlags[k])
				}
				from, err := manifest.Read(streams.In, filename, r.Kind(), r.Key.Name)
				if err != nil {
					return err
				}
				plan = func(ctx context.Context, c *connect.Cluster, r connect.Resource) (render.Plan, error) {
					return p.PlanManifest(ctx, c, r, from, manager)
				}
			}
			planned, err := plan(cmd.Context(), cluster, r)
			if err != nil {
				return err
			}
			if err := format.Print(streams.Out, planned, func() { planned.Print(streams.Out, format) }); err != nil {
				return err
			}
			return planned.ExitError()
		},
	}
	format.AddFlag(cmd, render.JSON, render.YAML, render.Wide)
	cmd.Flags().StringVarP(&filename, "filename", "f", "", "plan as if this manifest of a Materialize or a policy were applied (-: standard input)")
	cmd.Flags().StringVar(&manager, "field-manager", "", "with -f: field manager of the server-side apply (default: the last one)")
	firstFlags = addPlanFlags(cmd.Flags(), kinds)
	return cmd
}

// noPlanError is the error for a kind that has no plan of its own.
func noPlanError(k kind.Kind, kindName, name string) error {
	text := fmt.Sprintf("there is no plan to show for %s: ", kindName)
	if h, ok := k.(kind.PlanHinter); ok {
		text += h.PlanHint() + "; "
	}
	return console.UsageErrorf("%s`fairlead status %s %s` shows its progress", text, strings.ToLower(kindName), name)
}

// kindAnnotation of a flag is the kind that the flag is for.
const kindAnnotation = "fairlead.dev/kind"

// addPlanFlags adds the flags of each kind, and returns the most important one of each.
func addPlanFlags(flags *pflag.FlagSet, kinds kind.Registry) map[kind.Kind]string {
	first := map[kind.Kind]string{}
	for _, k := range kinds {
		if p, ok := k.(kind.PlanFlagger); ok {
			own := pflag.NewFlagSet("", pflag.ContinueOnError)
			own.SortFlags = false
			p.AddPlanFlags(own)
			own.VisitAll(func(flag *pflag.Flag) {
				first[k] = cmp.Or(first[k], flag.Name)
				flag.Annotations = map[string][]string{kindAnnotation: {k.GroupKinds()[0].Kind}}
			})
			flags.AddFlagSet(own)
		}
	}
	return first
}

func validatePlanFlags(kinds kind.Registry) error {
	for _, k := range kinds {
		if p, ok := k.(kind.PlanFlagger); ok {
			if err := p.ValidatePlanFlags(); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPlanFlags refuses flags that are for other kinds.
func checkPlanFlags(flags *pflag.FlagSet, name string) (err error) {
	flags.Visit(func(flag *pflag.Flag) {
		if of := flag.Annotations[kindAnnotation]; len(of) > 0 && of[0] != name && err == nil {
			err = console.UsageErrorf("--%s is about %s, and not about %s", flag.Name, withArticle(of[0]), withArticle(name))
		}
	})
	return err
}

func withArticle(noun string) string {
	if strings.ContainsAny(noun[:1], "AEIOU") {
		return "an " + noun
	}
	return "a " + noun
}
