package workload

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/passage"
)

// probeEvery is how often the API server is asked again about what it refused: policies change too.
const probeEvery = 15 * time.Minute

// probe finds out, without writing anything, whether the API server would take now what it refused before, and tells
// whether anything has changed thereby.
func (w *writer) probe(ctx context.Context, o Observed, failed []passage.Step) bool {
	var group errgroup.Group
	group.SetLimit(w.atOnce)
	changed := false
	for _, step := range failed {
		uid, c := o.changeOf(step, w.now())
		if refusal, found := o.Refused[uid]; !found || refusal.due.IsZero() || w.now().Before(refusal.due) {
			continue
		}
		group.Go(func() error {
			allowed := w.answered(uid, w.patch(ctx, c, client.DryRunAll))
			w.mu.Lock()
			defer w.mu.Unlock()
			changed = changed || allowed
			return nil
		})
	}
	_ = group.Wait()
	return changed
}

// answered takes the answer to a question about what was refused, and tells whether it is so no more.
func (w *writer) answered(uid types.UID, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	refusal := w.refused[uid]
	switch {
	case err == nil:
		delete(w.refused, uid)
		return true
	case apierrors.IsConflict(err):
		// It was asked about what is no longer.
		refusal.due = w.now().Add(failurePause)
	default:
		refusal.due = w.now().Add(probeEvery)
	}
	w.refused[uid] = refusal
	return false
}

// changeOf is how a step would be carried out, and on what.
func (o Observed) changeOf(step passage.Step, now time.Time) (types.UID, patchable) {
	if step.Object.Kind == kindNamespace {
		seen := o.Fleet.Namespaces[step.Object.Name]
		return seen.UID, relabelOf(seen, step)
	}
	seen := deploymentOf(o.Fleet, step.Object)
	return seen.UID, moveOf(o, seen, step, o.run(), now)
}

// nextProbe is when to ask about the first of the steps that were refused; zero for never.
func (w *writer) nextProbe(o Observed, failed []passage.Step) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var next time.Time
	for _, step := range failed {
		uid, _ := o.changeOf(step, time.Time{})
		next = sooner(next, w.refused[uid].due)
	}
	return next
}
