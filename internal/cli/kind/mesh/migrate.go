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

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/passage"
)

func (k *Kind) Migrate(ctx context.Context, r connect.Resource) (kind.Change, error) {
	slices.Sort(k.intent.Consumers)
	k.intent.Consumers = slices.Compact(k.intent.Consumers)
	return planMigration(ctx, r, k.zone, func(*kumav1alpha1.Mesh) consumers.Intent { return k.intent })
}

// Abort has all consumers switched back.
func (*Kind) Abort(ctx context.Context, r connect.Resource) (kind.Change, error) {
	return planMigration(ctx, r, desired.ZoneInfo{}, func(mesh *kumav1alpha1.Mesh) consumers.Intent {
		intent := consumers.Intent{ID: string(uuid.NewUUID()), BatchSize: 1, Revert: true}
		if record := mesh.Status.Migration; record != nil {
			intent.BatchSize = max(record.BatchSize, 1)
		}
		return intent
	})
}

// planMigration finds out what an intent would do.
func planMigration(ctx context.Context, r connect.Resource, zone desired.ZoneInfo,
	intentFor func(*kumav1alpha1.Mesh) consumers.Intent,
) (kind.Change, error) {
	mesh, err := getMesh(ctx, r.Cluster.Client, r)
	if err != nil {
		return kind.Change{}, err
	}
	intent := intentFor(mesh)
	if hold := consumers.ModeHold(mesh, intent.Revert); hold != nil {
		return kind.Change{}, errors.New(hold.Message)
	}
	all, err := listConsumers(ctx, r, zone)
	if err != nil {
		return kind.Change{}, err
	}
	if err := checkConsumers(intent, mesh, all); err != nil {
		return kind.Change{}, err
	}
	return migrationChange(r, mesh, intent, consumers.PlanBatches(mesh, intent, all, time.Now()))
}

func migrationChange(r connect.Resource, mesh *kumav1alpha1.Mesh, intent consumers.Intent, decision passage.Decision,
) (kind.Change, error) {
	counts := decision.Plan.Counts()
	open := counts.Pending + counts.Running + counts.Failed
	if open == 0 {
		if done := nothingToMigrate(intent, mesh, counts.Done); done != "" {
			return kind.Change{Noop: fmt.Sprintf("%s: %s", r, done)}, nil
		}
	}
	text, err := intent.Annotation()
	if err != nil {
		return kind.Change{}, err
	}
	change := kind.Change{
		Show:     func(w io.Writer) { printMigration(w, mesh, intent, decision) },
		Question: "Switch the consumers over?",
		Apply:    func(ctx context.Context) error { return r.Annotate(ctx, kumav1alpha1.AnnotationMigrate, text) },
		Done:     fmt.Sprintf("%s: request recorded; the operator executes it\nTo see the progress: fairlead watch mesh %s --wait", r, mesh.Name),
	}
	switch {
	case intent.Revert && open == 0:
		change.Question = "Withdraw the request?"
		change.Show = func(w io.Writer) {
			fmt.Fprintf(w, "No consumer of Mesh %s is switched; the previous request is withdrawn.\n\n", mesh.Name)
		}
	case intent.Revert:
		change.Question = "Switch the consumers back?"
	}
	return change, nil
}

// listConsumers are those that have a Dataplane in a mesh.
func listConsumers(ctx context.Context, mesh connect.Resource, where desired.ZoneInfo) ([]string, error) {
	var list kumav1alpha1.DataplaneList
	if err := mesh.Cluster.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list Dataplanes: %w", err)
	}
	names := []string{}
	for i := range list.Items {
		if dataplane := &list.Items[i]; desired.MeshOf(dataplane) == mesh.Key.Name {
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

// nothingToMigrate says so where an intent that is open for no consumer would change nothing.
func nothingToMigrate(intent consumers.Intent, mesh *kumav1alpha1.Mesh, done int) string {
	before, err := consumers.IntentOf(mesh)
	switch {
	// One that waits, or that nobody can read, would still be followed one day.
	case intent.Revert && (err != nil || before != nil && !before.Revert):
		return ""
	case intent.Revert:
		return "no consumer is switched"
	case err == nil && before != nil && !before.Revert && len(before.Consumers) == 0 && done > 0:
		return fmt.Sprintf("%s switched already, and those to come will be", render.Count(done, "consumer"))
	}
	return ""
}

func printMigration(w io.Writer, mesh *kumav1alpha1.Mesh, intent consumers.Intent, decision passage.Decision) {
	counts := decision.Plan.Counts()
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
	if intent.AllowDisconnected {
		line += " Proxies that are not connected need not acknowledge."
	}
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
