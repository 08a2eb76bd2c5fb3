package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// writeConcurrency is how many objects are written at the same time: as many as keep an API server busy without crowding out
// others.
const writeConcurrency = 8

// writer moves workloads, with one write each. Every write is conditional on the resource version that was planned for: if
// the object has changed since, nothing is written and the next plan decides.
type writer struct {
	client    client.Client
	inventory *inventory.Tracker
	now       func() time.Time
	// concurrency is how many objects are written at the same time.
	concurrency int
	// applied is called after each step that was written; it may be nil.
	applied func(Observed, passage.Step)

	mu sync.Mutex
	// refused has the objects whose change was refused.
	refused map[types.UID]Refusal
	// transient has since when writes of an object fail with transient errors.
	transient map[types.UID]failureStreak
	// unwritten has the marks of ended moves that could not be written.
	unwritten map[types.UID]Mark
	// relabels has when labels of namespaces were changed.
	relabels kube.DriftLimiter[relabelKey]
	// lastRelabel is when the label of a namespace was last changed, or a migration began.
	lastRelabel time.Time
}

func newWriter(c client.Client, workloads *inventory.Tracker, now func() time.Time, atOnce int) *writer {
	return &writer{
		client: c, inventory: workloads, now: now, concurrency: atOnce,
		refused: map[types.UID]Refusal{}, transient: map[types.UID]failureStreak{}, unwritten: map[types.UID]Mark{},
	}
}

const (
	// transientTimeout is how long an object with transient errors is retried before it counts as refused.
	transientTimeout = 10 * time.Second
	// labelPropagation is how long API servers may take to observe changed labels of namespaces and changed webhooks of
	// tags. A pod that is created before that gets the sidecar of the old revision.
	labelPropagation = time.Second
)

// applySteps applies steps. A permanent refusal of the API server is recorded, and is no error.
func (w *writer) applySteps(ctx context.Context, o Observed, run time.Time, steps []passage.Step) error {
	var group errgroup.Group
	group.SetLimit(w.concurrency)
	errs := make([]error, len(steps))
	log := ctrl.LoggerFrom(ctx)
	for i, step := range steps {
		group.Go(func() error {
			var refused *Refusal
			var err error
			if step.Object.Kind == kindNamespace {
				refused, err = w.relabel(ctx, o, step)
			} else {
				refused, err = w.move(ctx, o, o.find(step.Object), step, run)
			}
			switch {
			case refused != nil:
				log.Info("cannot apply a step", "action", step.Action, "object", step.Object.String(), "why", refused.Message)
			case err == nil:
				kube.LogStep(ctx, "revision", step)
			}
			errs[i] = err
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// relabel sets the revision label of a namespace to the target.
func (w *writer) relabel(ctx context.Context, o Observed, step passage.Step) (*Refusal, error) {
	seen := o.Inventory.Namespaces[step.Object.Name]
	if refused := w.contestedRefusal(o, seen, step); refused != nil {
		return refused, nil
	}
	c := relabelPatch(seen, step)
	err := w.patch(ctx, c)
	if err == nil {
		w.inventory.ObserveNamespaceWrite(c.object)
		w.recordRelabelTime()
		w.recordRelabel(seen.UID, step.To)
		w.recordApplied(o, step)
	}
	return w.classifyError(o, err, seen.UID, choiceOf(seen), "change the label of namespace %s", step.Object.Name)
}

// move restarts a workload on the target.
func (w *writer) move(ctx context.Context, o Observed, seen *inventory.Workload, step passage.Step, run time.Time) (*Refusal, error) {
	err := w.patchMark(ctx, seen, movePatch(o, seen, step, run, w.now()))
	if err == nil {
		w.recordApplied(o, step)
	}
	return w.classifyError(o, err, seen.UID, versionOf(seen), "move %s", objectOf(seen))
}

func (w *writer) recordApplied(o Observed, step passage.Step) {
	if w.applied != nil {
		w.applied(o, step)
	}
}

// recordOutcome writes the mark of an ended move. It restarts nothing.
func (w *writer) recordOutcome(ctx context.Context, o Observed, e endedMove) error {
	err := w.patchMark(ctx, e.Workload, markPatch(e.Workload, e.mark))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		w.mu.Lock()
		w.unwritten[e.UID] = e.mark
		w.mu.Unlock()
	}
	_, err = w.classifyError(o, err, e.UID, versionOf(e.Workload), "record the outcome of moving %s", objectOf(e.Workload))
	return err
}

func (w *writer) patchMark(ctx context.Context, seen *inventory.Workload, c objectPatch) error {
	if err := w.patch(ctx, c); err != nil {
		return err
	}
	w.inventory.ObserveWrite(c.object)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.unwritten, seen.UID)
	return nil
}

func (w *writer) patch(ctx context.Context, c objectPatch, options ...client.PatchOption) error {
	text, err := json.Marshal(c.body)
	if err != nil {
		return fmt.Errorf("encode a change: %w", err)
	}
	options = append(options, client.FieldOwner(v1.FieldOwnerMigration))
	return w.client.Patch(ctx, c.object, client.RawPatch(types.MergePatchType, text), options...)
}

// recordRelabelTime starts the time that labels take to propagate.
func (w *writer) recordRelabelTime() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastRelabel = w.now()
}

// propagationLeft is how long labels still take to propagate.
func (w *writer) propagationLeft() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return labelPropagation - w.now().Sub(w.lastRelabel)
}

// apply records ended moves before it starts new ones: a later batch implies that the batches before it have settled, each
// as its mark says.
func (r *reconciler) apply(ctx context.Context, o Observed, d decision) error {
	defer kube.Span(&ctx, kube.StageApply)()
	var errs []error
	for _, e := range d.endedMoves {
		err := r.writer.recordOutcome(ctx, o, e)
		errs = append(errs, err)
		if err == nil && e.mark.state() == passage.Running {
			r.recorder.Eventf(e.Reference(), o.Istio, corev1.EventTypeWarning, string(v1.ReasonOverdue), "migrate",
				"%s", o.timeouts().overdueReason(e.Workload, o.Istio.Name).Message)
		}
		if err == nil && e.mark.state() == passage.Failed {
			r.recorder.Eventf(e.Reference(), o.Istio, corev1.EventTypeWarning, string(v1.ReasonMigrationFailed), "migrate",
				"moving to %s failed: %s", e.mark.Target, e.mark.Reason.Message)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.writer.applySteps(ctx, o, o.lastRunStart(), r.startable(d))
}

// startable leaves out restarts until changed labels have propagated to all API servers.
func (r *reconciler) startable(d decision) []passage.Step {
	if r.writer.propagationLeft() <= 0 {
		return d.Start
	}
	return slices.DeleteFunc(slices.Clone(d.Start), func(s passage.Step) bool { return s.Disruptive })
}
