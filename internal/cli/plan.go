package cli

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/manifest"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
)

func newPlanCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var format render.Format
	var q query
	var version, filename, manager string
	cmd := &cobra.Command{
		Use:   "plan TYPE NAME",
		Short: "Show what the operator does about a resource, without doing it",
		Long: `Show what the operator does about a resource, without doing it.

It is the same plan that the operator makes from the same state of the cluster. For a Materialize it says
whether there is a rollout and which fields make it so. For a PropagationPolicy it says what becomes of every
object in every cluster, what changes in it, and whether its pods restart: the clusters try each write without
doing it. With -f both are planned for as if that manifest were applied, with the resources beside a policy.
For a Mesh it says what another --mode changes for each consumer: what it calls, from which zones that is answered
and which policies apply to it.

Exit codes: 0 nothing to do, 3 there are changes, 1 something stands in the way.`,
		Example: `  fairlead plan istio default
  fairlead plan istio default --version v1.26.0
  fairlead plan mzs production -n shop -f production.yaml
  fairlead plan pp deployments-pp -n shop
  fairlead plan mesh default --mode Everywhere
  fairlead plan istio default -o json`,
		Args: connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("version") {
				if version != "" && !versionPattern.MatchString(version) {
					return console.UsageErrorf("--version %s is neither an exact version such as v1.24.0 nor one such as v1.24-latest", version)
				}
				q.Version = &version
			}
			if q.hasCharts() {
				if err := q.Charts.Validate(); err != nil {
					return console.UsageErrorf("%v", err)
				}
			}
			if err := q.Mesh.validate(); err != nil {
				return err
			}
			cluster, r, err := resolveArgs(c, args)
			if err != nil {
				return err
			}
			kind := r.Kind()
			if !slices.Contains(plannable(), kind) {
				return console.UsageErrorf("there is no plan to show for %s: what the operator does about it follows from the Istio, "+
					"and `fairlead status %s %s` tells how far it is", kind.Kind, strings.ToLower(kind.Kind), r.Key.Name)
			}
			if kind != istios && (q.Version != nil || q.hasCharts()) {
				return console.UsageErrorf("--version and where charts come from are about an Istio: a %s is planned with -f", kind.Kind)
			}
			if kind == istios && filename != "" {
				return console.UsageErrorf("-f is about a Materialize or a policy: an %s is planned with --version", kind.Kind)
			}
			if kind == meshes && filename != "" {
				return console.UsageErrorf("-f is about a Materialize or a policy: a %s is planned with --mode", kind.Kind)
			}
			if kind != meshes && q.Mesh.isSet() {
				return console.UsageErrorf("--mode, --consumer, --switched and where a mesh is are about a Mesh, and not about a %s", kind.Kind)
			}
			if filename != "" {
				from, err := manifest.Read(streams.In, filename, kind, r.Key.Name)
				if err != nil {
					return err
				}
				if err := applyManifest(cmd.Context(), cluster, &q, r, from, manager); err != nil {
					return err
				}
			}
			account, err := planResource(cmd.Context(), cluster, r, q)
			if err != nil {
				return err
			}
			if kind == materializes && !hasCertManager(cluster) {
				account.failCertificates(q.Proposed)
			}
			report := newPlanReport(account, time.Now())
			if encoded, err := format.Encode(streams.Out, report); err != nil {
				return err
			} else if f := account.Forecast; !encoded && f != nil {
				printPolicyForecast(streams.Out, format, *f)
			} else if m := account.Mesh; !encoded && m != nil {
				printMeshForecast(streams.Out, format, *m)
			} else if !encoded {
				printDecision(streams.Out, format, report.Rollout)
				printPlan(streams.Out, format, account.Plan)
				if account.Workloads != nil {
					printWorkloadsPlan(streams.Out, format, report.Workloads, account.Workloads.batching)
				}
				render.Note(streams.Out, account.Note)
			}
			return planExit(report)
		},
	}
	format.AddFlag(cmd, render.JSON, render.YAML, render.Wide)
	cmd.Flags().StringVar(&version, "version", "", "plan as if spec.version of the Istio were this")
	cmd.Flags().StringVarP(&filename, "filename", "f", "", "plan as if this manifest of the Materialize, or of the policy, were applied (-: standard input)")
	cmd.Flags().StringVar(&manager, "field-manager", "", "with -f: who applies it on the server's side (default: who did so last)")
	q.Charts.AddFlags(cmd.Flags())
	q.Mesh.addFlags(cmd.Flags())
	return cmd
}

// versionPattern is what the API takes for spec.version.
var versionPattern = regexp.MustCompile(`^v[0-9]+\.[0-9]+(\.[0-9]+(-[0-9a-z.-]+)?|-latest)$`)

// planExit puts changes before failures among workloads: those that failed do not keep the others from moving.
func planExit(report planReport) error {
	switch w := report.Workloads; {
	case len(report.Failures()) > 0, report.Rollout.isBlocked():
		return console.ExitError{Code: console.ExitFailed}
	case len(render.Pending(report.Plan)) > 0, report.Rollout.hasChanges(), w != nil && len(render.Pending(w.Plan)) > 0:
		return console.ExitError{Code: console.ExitUnfinished}
	case w != nil && len(w.Failures()) > 0:
		return console.ExitError{Code: console.ExitFailed}
	}
	return nil
}

func printPlan(w io.Writer, format render.Format, plan passage.Plan) {
	if plan.Hold != nil {
		fmt.Fprintf(w, "Held: %s\n", plan.Hold.Message)
	}
	var open []passage.Step
	for _, s := range plan.Steps {
		if s.State != passage.Done {
			open = append(open, s)
		}
	}
	changes := len(render.Pending(plan))
	switch failures := len(plan.Failures()); {
	case failures > 0 && changes > 0 && plan.Passage == v1alpha2.PassageRollout:
		fmt.Fprintf(w, "%s to %s: %s, and %d that cannot be made.\n", plan.Subject, plan.Target, render.Count(changes, "change"), failures)
	case failures > 0:
		fmt.Fprintf(w, "%s cannot go on.\n", plan.Subject)
	case changes > 0:
		fmt.Fprintf(w, "%s to %s: %s.\n", plan.Subject, plan.Target, render.Count(changes, "change"))
	case plan.Changes():
		fmt.Fprintf(w, "Nothing to do for %s but to wait.\n", plan.Subject)
	default:
		fmt.Fprintf(w, "Nothing to do for %s.\n", plan.Subject)
	}
	switch {
	case len(open) == 0:
	case plan.Passage == v1alpha2.PassageRollout && format != render.Wide:
		fmt.Fprintln(w)
		printActions(w, format, open)
	default:
		fmt.Fprintln(w)
		render.PrintSteps(w, format, open)
	}
}

// printActions leaves out from what to what: for most steps of a rollout that is nothing, and for some it is a hash.
func printActions(w io.Writer, format render.Format, steps []passage.Step) {
	var rows [][]string
	for _, s := range steps {
		rows = append(rows, []string{string(s.Action), s.Object.String(), render.StateText(s), s.Reason.Message})
	}
	render.Table(w, format.Width(), []string{"ACTION", "OBJECT", "STATE", "WHY"}, rows)
}
