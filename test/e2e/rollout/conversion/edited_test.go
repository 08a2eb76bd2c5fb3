package conversion_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// The environments that are edited through v1alpha1 while that is how they are stored.
const (
	editedBefore = "edited before Fairlead came, "
	editedEarly  = "edited before Fairlead has stored it anew, "
)

// edits are those of people who have manifests of v1alpha1, with the image that is to serve then.
var edits = map[string]struct {
	change func(manifest) manifest
	tag    string
}{
	"with a request":                 {func(m manifest) manifest { return m.image("v2").with("requestRollout", secondRequest) }, "v2"},
	"without a request":              {func(m manifest) manifest { return m.image("v2") }, "v2"},
	"without a request or new image": {func(m manifest) manifest { return m.with("environmentdExtraArgs", []any{"--verbose"}) }, "v1"},
}

func editedLegacies() map[string]legacy {
	all := map[string]legacy{}
	for name, edit := range edits {
		before, early := atRest(clientSide), atRest(serverSide("terraform"))
		changed := edit.change(before.manifest)
		before.editedBefore, early.editedEarly = &changed, &changed
		all[editedBefore+name], all[editedEarly+name] = before, early
	}
	return all
}

// TestEditThroughV1alpha1 has each of them rolled out: none is taken for what serves already.
func TestEditThroughV1alpha1(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	for _, when := range []string{editedBefore, editedEarly} {
		for name, edit := range edits {
			t.Run(when+name, func(t *testing.T) {
				t.Parallel()
				e := w.inheritedAs(t, when+name)
				e.serves(t, 2, edit.tag)
				e.tells(t, slices.Concat(starting(2), takingOver(2))...)
			})
		}
	}
}

// holdEdited keeps the operator from writing the environments that are to be edited before it has stored them anew.
func (w *world) holdEdited(all map[string]legacy, until <-chan struct{}) {
	held := map[string]bool{}
	for what, l := range all {
		held[w.inherited[what].namespace] = l.editedEarly != nil
	}
	w.config = faults.New(faults.Rule{
		Match: func(r faults.Request) bool {
			return r.Writes() && strings.HasPrefix(r.Kind(), "materializes.") && held[r.Namespace]
		},
		Action: faults.Hold(until),
	}).Config(w.config)
}

func (w *world) editEarly(ctx context.Context, all map[string]legacy) error {
	for what, l := range all {
		if l.editedEarly == nil {
			continue
		}
		// The operator may still change how the API server calls its webhook.
		err := wait.Try(ctx, func(ctx context.Context) error { return l.apply(ctx, w.inherited[what], *l.editedEarly) })
		if err != nil {
			return err
		}
	}
	return nil
}
