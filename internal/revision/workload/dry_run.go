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

// dryRunInterval is how often a refused change is tried again as a dry run: policies change too.
const dryRunInterval = 15 * time.Minute

// dryRunRefused tries refused changes again as dry runs, and tells whether any of them is accepted now.
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

// recordDryRun records the result of a dry run, and tells whether the change is accepted now.
func (w *writer) recordDryRun(uid types.UID, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	refusal := w.refused[uid]
	switch {
	case err == nil:
		delete(w.refused, uid)
		return true
	case apierrors.IsConflict(err):
		// The object has changed since the plan.
		refusal.retryAt = w.now().Add(failureRequeueDelay)
	default:
		refusal.retryAt = w.now().Add(dryRunInterval)
	}
	w.refused[uid] = refusal
	return false
}

// patchFor is the patch of a step, and the UID of its object.
func (o Observed) patchFor(step passage.Step, now time.Time) (types.UID, objectPatch) {
	if step.Object.Kind == kindNamespace {
		seen := o.Inventory.Namespaces[step.Object.Name]
		return seen.UID, relabelPatch(seen, step)
	}
	seen := o.find(step.Object)
	return seen.UID, movePatch(o, seen, step, o.lastRunStart(), now)
}

// nextDryRun is when the next dry run is due; zero for never.
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
