package cli

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fairlead/fairlead/internal/adoption/takeover"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
)

func newAdoptCommand(c *connect.Flags, streams Streams) *cobra.Command {
	var confirm console.Confirmation
	var format render.Format
	var selector string
	a := takeover.Takeover{KindNamed: connect.MappingFor, Kinds: takeover.DefaultKinds()}
	cmd := &cobra.Command{
		Use:   "adopt --cluster NAME -n NAMESPACE",
		Short: "Bring existing resources of a cluster under the management of the hub",
		Long: `Bring the resources in a namespace of a cluster under the management of the hub.

The command copies the resources to the same namespace of the hub, without the fields that the cluster has set. Last, it
writes one PropagationPolicy with conflictResolution Overwrite, which takes the resources over in the cluster. No pod
restarts, and nothing in the cluster changes before the policy is written.

Resources that the hub has already are not changed, so the command can be interrupted and run again. Resources that another
hub manages, or that have a controller in the cluster, are left out. The copies must not start pods on the hub: use a hub
without controllers for workloads.

With -o yaml the command prints the resources and the policy instead of writing them; ` + "`fairlead plan pp NAME`" + ` shows what
the policy does.`,
		Example: `  fairlead adopt --cluster west -n shop
  fairlead adopt --cluster west -n shop --kind deployments,services -l app=cart --with-dependencies --yes
  fairlead adopt --cluster west -n shop -o yaml`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if a.Selector, err = labels.Parse(selector); err != nil {
				return console.UsageErrorf("-l %s is not a selector: %v", selector, err)
			}
			if len(a.Kinds) == 0 {
				return console.UsageErrorf("--kind names no kind: give some, such as deployments,services, or leave it out")
			}
			if format == render.Text {
				if err := confirm.RequireTerminal(cmd, streams.In); err != nil {
					return err
				}
			}
			hub, err := c.Connect()
			if err != nil {
				return err
			}
			a.Namespace = hub.Namespace
			if a.Policy == "" {
				a.Policy = "adopted-" + a.Cluster
			}
			draft, err := a.Draft(cmd.Context(), hub.Client)
			if err != nil {
				return err
			}
			if format == render.YAML {
				return printDraft(streams.Out, draft)
			}
			return adoptNamespace(hub, cmd, streams, &confirm, a, draft)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&a.Cluster, "cluster", "", "name of the cluster on the hub")
	flags.StringSliceVar(&a.Kinds, "kind", a.Kinds, "kinds to adopt, as kubectl takes them")
	flags.StringVarP(&selector, "selector", "l", "", "label selector of the resources to adopt, as kubectl takes it")
	flags.BoolVar(&a.WithDependencies, "with-dependencies", false,
		"also adopt the ConfigMaps, Secrets, PersistentVolumeClaims and ServiceAccounts that pods refer to")
	flags.StringVar(&a.Policy, "policy", "", "name of the PropagationPolicy (default adopted-CLUSTER)")
	format.AddFlag(cmd, render.YAML)
	confirm.AddFlag(cmd)
	_ = cmd.MarkFlagRequired("cluster")
	return cmd
}

// adoptNamespace shows what is to be written, asks, and writes it.
func adoptNamespace(c *connect.Cluster, cmd *cobra.Command, streams Streams, confirm *console.Confirmation, a takeover.Takeover, draft takeover.Draft) error {
	policy := fmt.Sprintf("propagationpolicy.policy.karmada.io/%s", a.Policy)
	printAdoption(streams.Out, a, draft)
	switch {
	case draft.Policy == nil:
		return nil
	case draft.Complete():
		fmt.Fprintf(streams.Out, "%s: the hub has all of it already\n", policy)
		return nil
	}
	ctx := cmd.Context()
	question := fmt.Sprintf("Write %s and the policy, and take over what runs?", render.Count(len(draft.Templates), "template"))
	if err := confirm.Ask(ctx, streams, question); err != nil {
		return err
	}
	m := render.NewProgress(streams.Err, len(draft.Templates), "templates written")
	copied, err := draft.Write(ctx, c.Client, m.Show)
	m.End()
	printRefusals(streams.Err, copied.Refused)
	if err != nil {
		return err
	}
	fmt.Fprintf(streams.Out, "%s: %s written, %d on the hub before\n", policy, render.Count(copied.Written, "template"), len(draft.Present)+copied.Overtaken)
	fmt.Fprintf(streams.Out, "To see the progress: fairlead status pp %s -n %s\n", a.Policy, a.Namespace)
	if n := len(copied.Refused); n > 0 {
		return fmt.Errorf("the hub did not accept %s: correct them and run it again", render.Count(n, "template"))
	}
	return nil
}

func printAdoption(w io.Writer, a takeover.Takeover, draft takeover.Draft) {
	if draft.Policy == nil {
		fmt.Fprintf(w, "There is nothing to adopt in namespace %s of cluster %s.\n", a.Namespace, a.Cluster)
	} else {
		render.Paragraph(w, fmt.Sprintf("Namespace %s of cluster %s: %s to write to the hub, %d there already, %d left out. "+
			"PropagationPolicy %s takes over what runs, and no other cluster gets it.",
			a.Namespace, a.Cluster, render.Count(len(draft.Templates), "template"), len(draft.Present), len(draft.Skipped), a.Policy))
	}
	render.PrintList(w, render.Text, []string{"KIND", "TO WRITE", "THERE ALREADY", "LEFT OUT"}, draft.Counts(), func(c takeover.Count) []string {
		return []string{c.Kind, strconv.Itoa(c.Templates), strconv.Itoa(c.Present), strconv.Itoa(c.LeftOut)}
	})
	render.PrintList(w, render.Text, []string{"LEFT OUT", "WHY"}, draft.Skipped, func(s takeover.Skipped) []string {
		return []string{s.Object.String(), s.Why}
	})
	fmt.Fprintln(w)
}

// maxRefusals is how many refusals are told of one by one: a thousand say no more than the first.
const maxRefusals = 10

func printRefusals(w io.Writer, refused []takeover.Refusal) {
	for i, r := range refused {
		if i == maxRefusals {
			fmt.Fprintf(w, "... and %d more\n", len(refused)-i)
			return
		}
		fmt.Fprintf(w, "%s was not accepted: %s\n", r.Object, console.OneLine(r.Err))
	}
}

func printDraft(w io.Writer, draft takeover.Draft) error {
	objects, err := draft.Objects()
	if err != nil {
		return err
	}
	var printer printers.YAMLPrinter
	for _, o := range objects {
		if err := printer.PrintObj(o, w); err != nil {
			return fmt.Errorf("write %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}
