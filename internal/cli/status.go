package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// statusReport is what `status` prints: the view that everything draws, and what the operator last wrote.
type statusReport struct {
	passage.View
	// Reported is false while the operator has not seen the latest spec.
	Reported   bool               `json:"reported"`
	Conditions []metav1.Condition `json:"conditions"`
	// References are what uses the resource; absent for one that nothing refers to by name.
	References []usage.Reference `json:"references,omitzero"`
	// Workloads are how far those of an Istio are; absent where none are moved.
	Workloads *passage.View `json:"workloads,omitempty"`
	// Rollout is where that of a Materialize is; absent for anything else.
	Rollout *rolloutStatus `json:"rollout,omitempty"`
	// Adoption is how far a policy is in each cluster; absent for anything else.
	Adoption *adoptionStatus `json:"adoption,omitempty"`
	// Switching is how far the consumers of a Mesh are; absent for anything else.
	Switching *meshStatus `json:"switching,omitempty"`
	note      string
}

func newStatusCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var format render.Format
	var policies bool
	var where zoneFlags
	cmd := &cobra.Command{
		Use:   "status TYPE NAME",
		Short: "Show how far the operator is with a resource",
		Long: `Show how far the operator is with a resource.

With --policies, for a Dataplane: which policies apply to what it calls, and why the others do not.

Exit codes: 0 done, 1 failed, 3 still in progress.`,
		Example: "  fairlead status istio default\n  fairlead status mzs production -n shop\n  fairlead status pp deployments-pp -n shop\n  fairlead status mesh default\n  fairlead status dataplane cart-1 -n shop --policies\n  fairlead status istio default -o json",
		Args:    connect.RequireTypeAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if policies {
				return explainPolicies(cmd.Context(), c, streams.Out, format, args, where)
			}
			if where.isSet() {
				return console.UsageErrorf("where a mesh is goes with --policies")
			}
			cluster, r, err := resolveArgs(c, args)
			if err != nil {
				return err
			}
			account, err := reportResource(cmd.Context(), cluster, r, query{})
			if err != nil {
				return err
			}
			report := newStatusReport(account, time.Now())
			if encoded, err := format.Encode(streams.Out, report); err != nil {
				return err
			} else if !encoded {
				printStatus(streams.Out, format, report)
			}
			return statusExit(report)
		},
	}
	format.AddFlag(cmd, render.JSON, render.YAML, render.Wide)
	cmd.Flags().BoolVar(&policies, "policies", false, "of a Dataplane: tell which policies apply to what it calls, and why")
	where.addFlags(cmd.Flags())
	return cmd
}

func newStatusReport(a account, now time.Time) statusReport {
	report := statusReport{
		View:       passage.NewView(passage.Next(a.Plan, a.Batching, now), now),
		Reported:   a.ObservedGeneration == a.Generation,
		Conditions: append([]metav1.Condition{}, a.Conditions...),
		References: a.References,
		note:       a.Note,
	}
	if e := a.Rollout; e != nil {
		report.Rollout = e.status(now)
		report.headlineOf(a.Decision)
	}
	if a.Adoption {
		report.Adoption = newAdoptionStatus(a.Plan)
	}
	if report.Switching = a.Switching; report.Switching != nil {
		report.headlineOfMesh()
	}
	if w := a.Workloads; w != nil {
		view := passage.NewView(passage.Next(w.plan, w.batching, now), now)
		report.Workloads = &view
	}
	return report
}

// refused means that the operator tried, and that only a person can help.
func (r statusReport) refused() bool {
	return r.Reported && slices.ContainsFunc(r.Conditions, func(c metav1.Condition) bool {
		return c.Type != string(v1.ConditionInUse) && c.Status == metav1.ConditionFalse &&
			slices.Contains(userReasons, v1.Reason(c.Reason))
	})
}

func statusExit(r statusReport) error {
	w := r.Workloads
	switch {
	case r.State == passage.CompletedWithFailures, r.State == passage.Stopped, r.refused(),
		r.Reported && r.State == passage.Held && r.Rollout.needsUser():
		return console.ExitError{Code: console.ExitFailed}
	case r.State != passage.Completed || !r.Reported, w != nil && !w.Settled:
		return console.ExitError{Code: console.ExitUnfinished}
	case w != nil && w.State != passage.Completed:
		return console.ExitError{Code: console.ExitFailed}
	}
	return nil
}

func printStatus(w io.Writer, format render.Format, r statusReport) {
	title := r.Subject.String()
	if r.Target != "" {
		title += " to " + r.Target
	}
	fmt.Fprintf(w, "%s: %s\n", title, r.State)
	headline := r.Headline
	if width := format.Width(); width > 0 {
		headline = strings.Join(render.Wrap(headline, width), "\n")
	}
	fmt.Fprintln(w, headline)
	if !r.Reported && (r.Rollout == nil || !r.Rollout.Deleting) {
		fmt.Fprintln(w, "The operator has not reported on the latest spec yet: is it running?")
	}
	if r.Rollout != nil {
		// What the condition says is in the headline, and the steps to come are in the plan.
		printRollout(w, format, r)
		render.Note(w, r.note)
		return
	}
	if r.Switching != nil {
		printSwitching(w, format, r)
		r.Conditions = omitHeadline(r.Conditions, r.Headline)
		printConditions(w, format, r)
		return
	}
	if len(r.Steps) > 0 && r.Adoption == nil {
		fmt.Fprintln(w)
		render.PrintSteps(w, format, r.Steps)
	}
	printAdoptionStatus(w, format, r)
	printWorkloads(w, format, r.Workloads)
	printConditions(w, format, r)
	printReferences(w, format, r.References)
}

func printConditions(w io.Writer, format render.Format, r statusReport) {
	if len(r.Conditions) == 0 {
		return
	}
	fmt.Fprintln(w)
	var rows [][]string
	for _, c := range r.Conditions {
		age := duration.HumanDuration(r.At.Sub(c.LastTransitionTime.Time))
		rows = append(rows, []string{c.Type, string(c.Status), c.Reason, age, c.Message})
	}
	render.Table(w, format.Width(), []string{"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"}, rows)
}

func printReferences(w io.Writer, format render.Format, references []usage.Reference) {
	if len(references) == 0 {
		return
	}
	fmt.Fprintln(w)
	var rows [][]string
	for _, ref := range references {
		rows = append(rows, []string{ref.Kind, render.OrDash(ref.Namespace), ref.Name, ref.By})
	}
	render.Table(w, format.Width(), []string{"USED BY", "NAMESPACE", "NAME", "THROUGH"}, rows)
}
