package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/passage"
)

func (k *Kind) AddMigrateFlags(flags *pflag.FlagSet) {
	k.intent.ID = string(uuid.NewUUID())
	flags.Int32Var(&k.intent.BatchSize, "batch-size", 1, "how many consumers to switch at a time")
	flags.DurationVar(&k.intent.Delay.Duration, "delay", 0, "how long to wait between a batch and the next one")
	flags.StringSliceVar(&k.intent.Consumers, "consumers", nil, "switch only these, such as shop/Deployment/cart; in universal, the names of Dataplanes")
	flags.BoolVar(&k.intent.Revert, "revert", false, "switch consumers back")
	flags.StringVar(&k.environment, "mesh-environment", desired.Kubernetes, "environment of the operator: kubernetes or universal")
}

func (k *Kind) ValidateMigrateFlags() error {
	if err := k.intent.Validate(); err != nil {
		return console.UsageErrorf("%v", err)
	}
	if env := k.environment; env != desired.Kubernetes && env != desired.Universal {
		return console.UsageErrorf("--mesh-environment %q is neither %s nor %s", env, desired.Kubernetes, desired.Universal)
	}
	slices.Sort(k.intent.Consumers)
	k.intent.Consumers = slices.Compact(k.intent.Consumers)
	return nil
}

func (k *Kind) Migrate(ctx context.Context, c *connect.Cluster, r connect.Resource, streams console.Streams, confirm *console.Confirmation) error {
	return migrate(ctx, c, r, streams, confirm, k.intent, desired.ZoneInfo{Environment: k.environment})
}

// Abort has all consumers switched back.
func (*Kind) Abort(ctx context.Context, c *connect.Cluster, r connect.Resource, streams console.Streams, confirm *console.Confirmation) error {
	mesh, err := getMesh(ctx, c.Client, r)
	if err != nil {
		return err
	}
	intent := consumers.Intent{ID: string(uuid.NewUUID()), BatchSize: 1, Revert: true}
	if record := mesh.Status.Migration; record != nil {
		intent.BatchSize = max(record.BatchSize, 1)
	}
	return migrate(ctx, c, r, streams, confirm, intent, desired.ZoneInfo{})
}

// migrate shows what an intent would do, asks, and records it.
func migrate(ctx context.Context, c *connect.Cluster, r connect.Resource, streams console.Streams, confirm *console.Confirmation,
	intent consumers.Intent, zone desired.ZoneInfo,
) error {
	mesh, err := getMesh(ctx, c.Client, r)
	if err != nil {
		return err
	}
	if hold := consumers.ModeHold(mesh, intent.Revert); hold != nil {
		return errors.New(hold.Message)
	}
	all, err := listConsumers(ctx, c, mesh.Name, zone)
	if err != nil {
		return err
	}
	if err := checkConsumers(intent, mesh, all); err != nil {
		return err
	}
	decision := consumers.PlanBatches(mesh, intent, all, time.Now())
	if done := nothingToMigrate(intent, mesh, decision); done != "" {
		fmt.Fprintf(streams.Out, "%s: %s\n", r, done)
		return nil
	}
	printMigration(streams.Out, mesh, intent, decision)
	if confirm == nil {
		return nil
	}
	question := "Switch the consumers over?"
	switch {
	case intent.Revert && isWithdrawal(decision):
		question = "Withdraw the request?"
	case intent.Revert:
		question = "Switch the consumers back?"
	}
	if err := confirm.Ask(ctx, streams, question); err != nil {
		return err
	}
	text, err := intent.Annotation()
	if err != nil {
		return err
	}
	if err := c.Annotate(ctx, r, kumav1alpha1.AnnotationMigrate, text); err != nil {
		return fmt.Errorf("migrate %s: %w", r, err)
	}
	fmt.Fprintf(streams.Out, "%s: request recorded; the operator executes it\nTo see the progress: fairlead watch mesh %s --wait\n", r, mesh.Name)
	return nil
}

// listConsumers are those that have a Dataplane in a mesh.
func listConsumers(ctx context.Context, c *connect.Cluster, mesh string, where desired.ZoneInfo) ([]string, error) {
	var list kumav1alpha1.DataplaneList
	if err := c.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list Dataplanes: %w", err)
	}
	names := []string{}
	for i := range list.Items {
		if dataplane := &list.Items[i]; desired.MeshOf(dataplane) == mesh {
			names = append(names, desired.ConsumerIn(dataplane, where))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// checkConsumers refuses names that nobody goes by.
func checkConsumers(intent consumers.Intent, mesh *kumav1alpha1.Mesh, all []string) error {
	from := "no Dataplane of Mesh %s is part of %s"
	if intent.Revert {
		from, all = "Mesh %s has not switched %s", slices.Sorted(maps.Keys(consumers.Switched(mesh)))
	}
	for _, name := range intent.Consumers {
		if _, found := slices.BinarySearch(all, name); !found {
			return fmt.Errorf(from+"; give --consumers some of %s", mesh.Name, name, joinSome(all))
		}
	}
	return nil
}

// maxNames is how many names a line has room for.
const maxNames = 5

func joinSome(names []string) string {
	switch {
	case len(names) == 0:
		return "none: there are no consumers"
	case len(names) > maxNames:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}

// nothingToMigrate says so where an intent would change nothing.
func nothingToMigrate(intent consumers.Intent, mesh *kumav1alpha1.Mesh, decision passage.Decision) string {
	counts := decision.Plan.Counts()
	if counts.Pending+counts.Running+counts.Failed > 0 {
		return ""
	}
	before, err := consumers.IntentOf(mesh)
	if intent.Revert {
		// One that waits, or that nobody can read, would still be followed one day.
		if err != nil || before != nil && !before.Revert {
			return ""
		}
		return "no consumer is switched"
	}
	if err == nil && before != nil && !before.Revert && len(before.Consumers) == 0 && counts.Done > 0 {
		return fmt.Sprintf("%s switched already, and those to come will be", render.Count(counts.Done, "consumer"))
	}
	return ""
}

// isWithdrawal says whether nobody goes back, so that only what was asked for before is taken back.
func isWithdrawal(decision passage.Decision) bool {
	counts := decision.Plan.Counts()
	return counts.Pending+counts.Running+counts.Failed == 0
}

func printMigration(w io.Writer, mesh *kumav1alpha1.Mesh, intent consumers.Intent, decision passage.Decision) {
	counts := decision.Plan.Counts()
	if intent.Revert && isWithdrawal(decision) {
		fmt.Fprintf(w, "No consumer of Mesh %s is switched; the previous request is withdrawn.\n\n", mesh.Name)
		return
	}
	what := "to MeshServices"
	if intent.Revert {
		what = "back to kuma.io/service alone"
	}
	line := fmt.Sprintf("%s of Mesh %s %s, in %s of at most %d",
		render.Count(counts.Pending+counts.Running, "consumer"), mesh.Name, what, render.Count(decision.Batches, "batch"), intent.BatchSize)
	if intent.Delay.Duration > 0 {
		line += fmt.Sprintf(" and %s apart", intent.Delay.Duration)
	}
	if !intent.Revert && len(intent.Consumers) == 0 {
		line += ", and future ones"
	}
	line += ". No pod restarts."
	if mode := mesh.Mode(); intent.Revert && mode != kumav1alpha1.ModeReachableBackendRefs {
		line += fmt.Sprintf(" Their calls stay as they are in mode %s, which does not depend on switched consumers.", mode)
	}
	if counts.Done > 0 {
		line += fmt.Sprintf(" %s switched already.", render.Count(counts.Done, "consumer"))
	}
	if mesh.Annotations[fairlead.AnnotationPaused] == "true" {
		line += fmt.Sprintf(" The Mesh is paused: nothing starts until `fairlead resume mesh %s`.", mesh.Name)
	}
	render.Paragraph(w, line)
	steps := render.Open(render.SortByBatch(decision.Plan.Steps))
	render.PrintList(w, render.Text, []string{"BATCH", "CONSUMER", "FROM", "TO"}, steps, func(s passage.Step) []string {
		batch := strconv.Itoa(s.Batch)
		if s.State == passage.Running {
			batch = "underway"
		}
		return []string{batch, s.Object.String(), s.From, s.To}
	})
	fmt.Fprintln(w)
}
