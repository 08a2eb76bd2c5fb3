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

// dryRunInterval is how often the API server is asked again about what it refused: policies change too.
const dryRunInterval = 15 * time.Minute

// dryRunRefused finds out, without writing anything, whether the API server would take now what it refused before, and tells
// whether anything has changed thereby.
func (w *writer) dryRunRefused(ctx context.Context, o Observed, failed []passage.Step) bool {
	var group errgroup.Group
	group.SetLimit(w.concurrency)
	changed := false
	for _, step := range failed {
		uid, c := o.patchFor(step, w.now())
		if refusal, found := o.Refused[uid]; !found || refusal.retryAt.IsZero() || w.now().Before(refusal.retryAt) {
			continue
		}
		group.Go(func() error {
			allowed := w.recordDryRun(uid, w.patch(ctx, c, client.DryRunAll))
			w.mu.Lock()
			defer w.mu.Unlock()
			changed = changed || allowed
			return nil
		})
	}
	_ = group.Wait()
	return changed
}

// recordDryRun takes the answer to a question about what was refused, and tells whether it is so no more.
func (w *writer) recordDryRun(uid types.UID, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	refusal := w.refused[uid]
	switch {
	case err == nil:
		delete(w.refused, uid)
		return true
	case apierrors.IsConflict(err):
		// It was asked about what is no longer.
		refusal.retryAt = w.now().Add(failureRequeueDelay)
	default:
		refusal.retryAt = w.now().Add(dryRunInterval)
	}
	w.refused[uid] = refusal
	return false
}

// patchFor is how a step would be carried out, and on what.
func (o Observed) patchFor(step passage.Step, now time.Time) (types.UID, patchable) {
	if step.Object.Kind == kindNamespace {
		seen := o.Inventory.Namespaces[step.Object.Name]
		return seen.UID, relabelPatch(seen, step)
	}
	seen := deploymentOf(o.Inventory, step.Object)
	return seen.UID, movePatch(o, seen, step, o.run(), now)
}

// nextDryRun is when to ask about the first of the steps that were refused; zero for never.
func (w *writer) nextDryRun(o Observed, failed []passage.Step) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var next time.Time
	for _, step := range failed {
		uid, _ := o.patchFor(step, time.Time{})
		next = earliest(next, w.refused[uid].retryAt)
	}
	return next
}
