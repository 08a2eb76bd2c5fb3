// Package adoption has the commands of a hub: the clusters that join and leave it, and the takeover of what they run.
package adoption

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fairlead/fairlead/internal/adoption/takeover"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// NewAdoptCommand brings existing resources of a cluster under the management of the hub.
func NewAdoptCommand(c *connect.Flags, streams console.Streams) *cobra.Command {
	var confirm console.Confirmation
	var format render.Format
	var selector string
	a := takeover.Takeover{KindNamed: connect.MappingFor, Kinds: takeover.DefaultKinds()}
	cmd := &cobra.Command{
		Use:   "adopt [TYPE NAME...] --cluster NAME -n NAMESPACE",
		Short: "Bring existing resources of a cluster under the management of the hub",
		Long: `Bring resources of a cluster under the management of the hub: all of some kinds in a namespace, or those that are named.

The command copies the resources to the same namespace of the hub, without the fields that the cluster has set. Last, it
writes one PropagationPolicy with conflictResolution Overwrite, which takes the resources over in the cluster. No pod
restarts, and nothing in the cluster changes before the policy is written.

Resources are named as for kubectl, by TYPE NAME or TYPE/NAME. Cluster-scoped resources, such as a ClusterRole, have to be
named. A ClusterPropagationPolicy takes them over.

Resources that the hub has already are not changed, so the command can be interrupted and run again. Resources that another
hub manages, or that have a controller in the cluster, are left out. The copies must not start pods on the hub: use a hub
without controllers for workloads.

With -o yaml the command prints the resources and the policy instead of writing them; ` + "`fairlead plan pp NAME`" + ` shows what
the policy does.`,
		Example: `  fairlead adopt --cluster west -n shop
  fairlead adopt deployment/cart service/cart --cluster west -n shop
  fairlead adopt clusterrole cart --cluster west
  fairlead adopt --cluster west -n shop --kind deployments,services -l app=cart --with-dependencies --yes
  fairlead adopt --cluster west -n shop -o yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			_, err := objectNames(cmd, args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if a.Named, err = objectNames(cmd, args); err != nil {
				return err
			}
			if flags := cmd.Flags(); len(a.Named) > 0 && (flags.Changed("kind") || flags.Changed("selector")) {
				return console.UsageErrorf("--kind and -l select resources, and %s names them: leave out one of the two", strings.Join(args, " "))
			}
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
			return adopt(hub, cmd, streams, &confirm, a, draft)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&a.Cluster, "cluster", "", "name of the cluster on the hub")
	flags.StringSliceVar(&a.Kinds, "kind", a.Kinds, "kinds to adopt, as kubectl takes them")
	flags.StringVarP(&selector, "selector", "l", "", "label selector of the resources to adopt, as kubectl takes it")
	flags.BoolVar(&a.WithDependencies, "with-dependencies", false,
		"also adopt the ConfigMaps, Secrets, PersistentVolumeClaims and ServiceAccounts that pods refer to")
	flags.StringVar(&a.Policy, "policy", "", "name of the PropagationPolicy and the ClusterPropagationPolicy (default adopted-CLUSTER)")
	format.AddFlag(cmd, render.YAML)
	confirm.AddFlag(cmd)
	_ = cmd.MarkFlagRequired("cluster")
	return cmd
}

// objectNames reads TYPE NAME..., or TYPE/NAME..., as kubectl does.
func objectNames(cmd *cobra.Command, args []string) ([]takeover.Name, error) {
	if len(args) == 0 {
		return nil, nil
	}
	wrong := console.UsageErrorf("%s takes TYPE NAME... or TYPE/NAME..., but got %q; for all resources of a kind, give --kind%s", cmd.CommandPath(), strings.Join(args, " "), console.UsageHint(cmd))
	var names []takeover.Name
	if kind := args[0]; !strings.Contains(kind, "/") {
		for _, name := range args[1:] {
			if name == "" || strings.Contains(name, "/") {
				return nil, wrong
			}
			names = append(names, takeover.Name{Kind: kind, Name: name})
		}
		if len(names) == 0 {
			return nil, wrong
		}
		return names, nil
	}
	for _, arg := range args {
		kind, name, _ := strings.Cut(arg, "/")
		if kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, wrong
		}
		names = append(names, takeover.Name{Kind: kind, Name: name})
	}
	return names, nil
}

// adopt shows what is to be written, asks, and writes it.
func adopt(c *connect.Cluster, cmd *cobra.Command, streams console.Streams, confirm *console.Confirmation, a takeover.Takeover, draft takeover.Draft) error {
	printAdoption(streams.Out, a, draft)
	if len(draft.Policies) == 0 {
		return nil
	}
	var policies, progress []string
	for _, p := range draft.Policies {
		kind, status := "propagationpolicy", fmt.Sprintf("fairlead status pp %s -n %s", a.Policy, a.Namespace)
		if p.Object.GetNamespace() == "" {
			kind, status = "clusterpropagationpolicy", "fairlead status cpp "+a.Policy
		}
		policies, progress = append(policies, kind+".policy.karmada.io/"+a.Policy), append(progress, status)
	}
	if draft.Complete() {
		fmt.Fprintf(streams.Out, "%s: the hub has all of it already\n", strings.Join(policies, ", "))
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
	fmt.Fprintf(streams.Out, "%s: %s written, %d on the hub before\n", strings.Join(policies, ", "), render.Count(copied.Written, "template"), len(draft.Present)+copied.Overtaken)
	fmt.Fprintf(streams.Out, "To see the progress: %s\n", strings.Join(progress, "; "))
	if n := len(copied.Refused); n > 0 {
		return fmt.Errorf("the hub did not accept %s: correct them and run it again", render.Count(n, "template"))
	}
	return nil
}

func printAdoption(w io.Writer, a takeover.Takeover, draft takeover.Draft) {
	where := fmt.Sprintf("namespace %s of cluster %s", a.Namespace, a.Cluster)
	if draft.HasClusterScoped() {
		where = "cluster " + a.Cluster
	}
	if len(draft.Policies) == 0 {
		fmt.Fprintf(w, "There is nothing to adopt in %s.\n", where)
	} else {
		var policies []string
		for _, p := range draft.Policies {
			policies = append(policies, p.Object.GetObjectKind().GroupVersionKind().Kind+" "+p.Object.GetName())
		}
		verb := "takes"
		if len(policies) > 1 {
			verb = "take"
		}
		render.Paragraph(w, fmt.Sprintf("%s: %s to write to the hub, %d there already, %d left out. %s %s over what runs, and no other cluster gets it.",
			strings.ToUpper(where[:1])+where[1:], render.Count(len(draft.Templates), "template"), len(draft.Present), len(draft.Skipped), strings.Join(policies, " and "), verb))
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
