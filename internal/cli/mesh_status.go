package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/passage"
)

// meshStatus is how far the consumers of a Mesh are.
type meshStatus struct {
	// Mode that is asked for, and the one that proxies are configured by.
	Mode    kumav1alpha1.Mode `json:"mode"`
	InForce kumav1alpha1.Mode `json:"inForce"`
	// Asked says that somebody wants consumers to be switched, or back.
	Asked  bool `json:"asked"`
	Revert bool `json:"revert,omitempty"`
	// followed says that the operator has seen that.
	followed bool
	// Switched and Total count consumers.
	Switched  int32                           `json:"switched"`
	Total     int32                           `json:"total"`
	Consumers []kumav1alpha1.MigratedConsumer `json:"consumers"`
	// Advice are things that a person could do.
	Advice []string `json:"advice"`
}

func reportMesh(ctx context.Context, reader client.Reader, key client.ObjectKey, _ query) (account, error) {
	var mesh kumav1alpha1.Mesh
	if err := reader.Get(ctx, key, &mesh); err != nil {
		return account{}, fmt.Errorf("get Mesh %s: %w", key.Name, err)
	}
	return newMeshReport(&mesh), nil
}

func newMeshReport(mesh *kumav1alpha1.Mesh) account {
	progress := consumers.ReadProgress(mesh)
	result := account{
		Plan: progress.Plan, Batching: progress.Batching, Conditions: mesh.Status.Conditions,
		Generation: mesh.Generation, ObservedGeneration: mesh.Status.ObservedGeneration,
		Switching: &meshStatus{
			Mode: mesh.Mode(), InForce: mesh.ModeInForce(), Asked: progress.Requested, followed: progress.Observed,
			Consumers: []kumav1alpha1.MigratedConsumer{},
		},
	}
	if record := mesh.Status.Migration; record != nil {
		s := result.Switching
		s.Revert, s.Switched, s.Total = record.Revert, record.Switched, record.Total
		s.Consumers = append(s.Consumers, record.Consumers...)
	}
	if !progress.Observed {
		// An intent is an annotation, of which no generation tells.
		result.Generation = result.ObservedGeneration + 1
	}
	result.Switching.Advice = meshAdvice(mesh, progress.Requested)
	return result
}

// meshAdvice is what a person could do next.
func meshAdvice(mesh *kumav1alpha1.Mesh, asked bool) []string {
	command := func(verb, more string) string { return fmt.Sprintf("fairlead %s mesh %s%s", verb, mesh.Name, more) }
	back := "To go back: " + command("migrate", " --revert")
	if mode := mesh.Mode(); mode == kumav1alpha1.ModeEverywhere || mode == kumav1alpha1.ModeExclusive {
		back = fmt.Sprintf("To go back: set spec.meshServices: %s, where those that are switched stay so, then %s",
			kumav1alpha1.ModeReachableBackendRefs, command("migrate", " --revert"))
	}
	record := mesh.Status.Migration
	switch {
	case !asked && record == nil:
		return modeAdvice(mesh, command)
	case record == nil:
		return []string{}
	case mesh.Annotations[fairlead.AnnotationPaused] == "true":
		return []string{"To go on: " + command("resume", ""), back}
	case record.Failed > 0 && record.Revert:
		return []string{"To try again: " + command("retry", "")}
	case record.Failed > 0:
		return []string{"To try again: " + command("retry", ""), back}
	case record.Phase != string(passage.Completed) && record.Revert:
		return []string{"To start nothing more: " + command("pause", "")}
	case record.Phase != string(passage.Completed):
		return []string{"To start nothing more: " + command("pause", ""), back}
	case mesh.Mode() == kumav1alpha1.ModeDisabled:
		return []string{"To have it forgotten who is switched, which nothing looks at in mode Disabled: " + command("migrate", " --revert")}
	case record.Revert || mesh.Mode() == kumav1alpha1.ModeExclusive:
		return []string{back}
	}
	return []string{"To see what turning the old way off changes: " + command("plan", " --mode "+string(kumav1alpha1.ModeExclusive)), back}
}

func modeAdvice(mesh *kumav1alpha1.Mesh, command func(verb, more string) string) []string {
	switch mesh.Mode() {
	case kumav1alpha1.ModeDisabled:
		return []string{"To see what MeshServices would change: " + command("plan", " --mode "+string(kumav1alpha1.ModeReachableBackendRefs))}
	case kumav1alpha1.ModeReachableBackendRefs:
		return []string{"To switch consumers over: " + command("migrate", " --batch-size 10")}
	}
	return []string{}
}

// headlineOfMesh is what the operator says of it.
func (r *statusReport) headlineOfMesh() {
	condition := meta.FindStatusCondition(r.Conditions, kumav1alpha1.ConditionConsumersSwitched)
	switch {
	case !r.Switching.Asked && len(r.Switching.Consumers) == 0:
		r.Headline = "nobody has asked for its consumers to be switched over"
	case !r.Switching.followed:
		r.State, r.Headline = passage.InProgress, "what was asked for has not been taken up yet"
	case condition != nil:
		r.Headline = condition.Message
		if r.Switching.Mode == kumav1alpha1.ModeDisabled && r.Switching.Switched > 0 {
			r.Headline += "; that has no effect in mode Disabled, and has at once in mode ReachableBackendRefs"
		}
	}
}

func printSwitching(w io.Writer, format render.Format, r statusReport) {
	s := r.Switching
	if s == nil {
		return
	}
	fmt.Fprintf(w, "\nMode:       %s\n", s.mode())
	if s.Total > 0 {
		fmt.Fprintf(w, "Switched:   %d of %s\n", s.Switched, render.Count(int(s.Total), "consumer"))
	}
	// Batches are those of what was asked for before, until that is followed.
	if r.Batches > 0 && s.followed {
		fmt.Fprintf(w, "Batch:      %d of %d\n", r.Batch, r.Batches)
	}
	if r.Progress.Total > 0 && s.followed {
		fmt.Fprintf(w, "%s\n", render.Bar(r.Progress))
	}
	shown, more := s.Consumers, 0
	if format != render.Wide && len(shown) > render.MaxRows {
		shown = openConsumersFirst(shown)
		more = len(shown) - render.MaxRows
		shown = shown[:render.MaxRows]
	}
	if len(shown) > 0 {
		fmt.Fprintln(w)
		var rows [][]string
		for _, c := range shown {
			batch := "-"
			if c.Batch > 0 {
				batch = strconv.Itoa(int(c.Batch))
			}
			rows = append(rows, []string{c.Name, string(c.State), batch, duration.HumanDuration(r.At.Sub(c.Since.Time)), c.Message})
		}
		render.Table(w, format.Width(), []string{"CONSUMER", "STATE", "BATCH", "SINCE", "MESSAGE"}, rows)
	}
	if more > 0 {
		fmt.Fprintf(w, "... and %d more: -o wide shows all\n", more)
	}
	if len(s.Advice) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(s.Advice, "\n"))
	}
}

// openConsumersFirst are the consumers in the order in which a person wants to know of them.
func openConsumersFirst(consumers []kumav1alpha1.MigratedConsumer) []kumav1alpha1.MigratedConsumer {
	var sorted []kumav1alpha1.MigratedConsumer
	for _, states := range [][]kumav1alpha1.ConsumerState{
		{kumav1alpha1.ConsumerFailed}, {kumav1alpha1.ConsumerSwitching, kumav1alpha1.ConsumerReverting}, {kumav1alpha1.ConsumerWaiting},
		{kumav1alpha1.ConsumerSwitched, kumav1alpha1.ConsumerReverted},
	} {
		for _, c := range consumers {
			if c.State == states[0] || c.State == states[len(states)-1] {
				sorted = append(sorted, c)
			}
		}
	}
	return sorted
}

// mode in words, with the one in force where that is another.
func (s *meshStatus) mode() string {
	if s.InForce == s.Mode {
		return string(s.Mode)
	}
	return fmt.Sprintf("%s, for now as %s: see the condition %s", s.Mode, s.InForce, kumav1alpha1.ConditionGenerated)
}

// omitHeadline tells of conditions what the headline does not.
func omitHeadline(conditions []metav1.Condition, headline string) []metav1.Condition {
	rows := slices.Clone(conditions)
	for i := range rows {
		if message := rows[i].Message; message != "" && strings.HasPrefix(headline, message) {
			rows[i].Message = "see above"
		}
	}
	return rows
}

// watchMesh keeps a copy of one Mesh.
func watchMesh(ctx context.Context, c *connect.Cluster, r connect.Resource) (watcher, error) {
	if err := c.Client.Get(ctx, r.Key, &kumav1alpha1.Mesh{}); err != nil {
		return watcher{}, err
	}
	f, err := newWatchCache(c, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&kumav1alpha1.Mesh{}: {Field: fields.OneTermEqualSelector("metadata.name", r.Key.Name)},
	}})
	if err != nil {
		return watcher{}, err
	}
	if err := f.watchKinds(ctx, &kumav1alpha1.Mesh{}); err != nil {
		return watcher{}, err
	}
	if err := f.start(ctx, func() bool { return true }); err != nil {
		return watcher{}, err
	}
	return watcher{f.failOnError(func(ctx context.Context) (account, error) {
		return reportMesh(ctx, f.informers, r.Key, query{})
	}), f.changed}, nil
}
