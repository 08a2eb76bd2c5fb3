package workload

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// writeConcurrency is how many objects are written at the same time: as many as keep an API server busy without crowding out
// others.
const writeConcurrency = 8

// writer is what moves workloads, one write each. Every write is about the object as it was seen when it was decided on:
// if that has changed since, nothing is written and the next plan decides anew.
type writer struct {
	client    client.Client
	inventory *inventory.Tracker
	now       func() time.Time
	// concurrency is how many objects are written at the same time.
	concurrency int

	mu sync.Mutex
	// refused has what would not let itself be written.
	refused map[types.UID]Refusal
	// transient has since when an object could not be written for reasons that may pass.
	transient map[types.UID]failureStreak
	// unwritten has how moves have ended that could not be written down.
	unwritten map[types.UID]Mark
	// relabels has when the label of a namespace was moved, again and again.
	relabels map[types.UID][]relabelRecord
	// lastRelabel is when the label of a namespace was last moved, or a migration began.
	lastRelabel time.Time
}

func newWriter(c client.Client, workloads *inventory.Tracker, now func() time.Time, atOnce int) *writer {
	return &writer{
		client: c, inventory: workloads, now: now, concurrency: atOnce,
		refused: map[types.UID]Refusal{}, transient: map[types.UID]failureStreak{}, unwritten: map[types.UID]Mark{},
		relabels: map[types.UID][]relabelRecord{},
	}
}

const (
	// transientTimeout is how long an object is tried, when it fails in a way that may pass, before others are let past it.
	transientTimeout = 10 * time.Second
	// labelPropagation is how long API servers may take to see the labels of namespaces and the webhooks of tags that were
	// just moved. A pod that is made before that gets the sidecar of the old revision.
	labelPropagation = time.Second
)

// applySteps carries out steps. What an API server refuses for good is remembered, and is no error.
func (w *writer) applySteps(ctx context.Context, o Observed, run time.Time, steps []passage.Step) error {
	var group errgroup.Group
	group.SetLimit(w.concurrency)
	var errs errorList
	log := ctrl.LoggerFrom(ctx)
	for _, step := range steps {
		group.Go(func() error {
			var refused *Refusal
			var err error
			if step.Object.Kind == kindDeployment {
				refused, err = w.move(ctx, o, deploymentOf(o.Inventory, step.Object), step, run)
			} else {
				refused, err = w.relabel(ctx, o, step)
			}
			switch {
			case refused != nil:
				log.Info("cannot carry out a step", "action", step.Action, "object", step.Object.String(), "why", refused.Message)
			case err == nil:
				log.Info("applied a step", "action", step.Action, "object", step.Object.String(), "from", step.From,
					"to", step.To, "batch", step.Batch, "reason", step.Reason.String())
			}
			errs.add(err)
			return nil
		})
	}
	_ = group.Wait()
	return errs.joined()
}

// deploymentOf finds one where they are in the order of their namespaces and names; nil if it is not there.
func deploymentOf(picture inventory.Snapshot, object passage.Object) *appsv1.Deployment {
	i, found := slices.BinarySearchFunc(picture.Deployments, object, func(d *appsv1.Deployment, object passage.Object) int {
		return cmp.Or(strings.Compare(d.Namespace, object.Namespace), strings.Compare(d.Name, object.Name))
	})
	if !found {
		return nil
	}
	return picture.Deployments[i]
}

// errorList are errors of several writers.
type errorList struct {
	mu   sync.Mutex
	errs []error
}

func (c *errorList) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
}

func (c *errorList) joined() error { return errors.Join(c.errs...) }

// relabel moves the label of a namespace to the target.
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
	}
	return w.classifyError(o, err, seen.UID, choiceOf(seen), "change the label of namespace %s", step.Object.Name)
}

// move restarts a Deployment on the target.
func (w *writer) move(ctx context.Context, o Observed, seen *appsv1.Deployment, step passage.Step, run time.Time) (*Refusal, error) {
	err := w.patchMark(ctx, seen, movePatch(o, seen, step, run, w.now()))
	return w.classifyError(o, err, seen.UID, versionOf(seen), "move Deployment %s/%s", seen.Namespace, seen.Name)
}

// recordOutcome writes down on a Deployment how its move has ended. It restarts nothing.
func (w *writer) recordOutcome(ctx context.Context, o Observed, e endedMove) error {
	err := w.patchMark(ctx, e.Deployment, markPatch(e.Deployment, e.mark))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		w.mu.Lock()
		w.unwritten[e.UID] = e.mark
		w.mu.Unlock()
	}
	_, err = w.classifyError(o, err, e.UID, versionOf(e.Deployment), "record the outcome of moving Deployment %s/%s", e.Namespace, e.Name)
	return err
}

func (w *writer) patchMark(ctx context.Context, seen *appsv1.Deployment, c objectPatch[*appsv1.Deployment]) error {
	if err := w.patch(ctx, c); err != nil {
		return err
	}
	w.inventory.ObserveWrite(c.object)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.unwritten, seen.UID)
	return nil
}

func (w *writer) patch(ctx context.Context, c patchable, options ...client.PatchOption) error {
	object, patch, err := c.patch()
	if err != nil {
		return err
	}
	return w.client.Patch(ctx, object, patch, append(options, client.FieldOwner(v1.FieldOwnerMigration))...)
}

// recordRelabelTime notes that API servers have something to see before pods are made.
func (w *writer) recordRelabelTime() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastRelabel = w.now()
}

// propagationLeft is after how long all API servers have seen it.
func (w *writer) propagationLeft() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return labelPropagation - w.now().Sub(w.lastRelabel)
}

// apply writes down what has ended, and only then starts what is to be started: from the next batch it is concluded that
// those before it have settled, each as its mark says.
func (r *reconciler) apply(ctx context.Context, o Observed, d decision) error {
	var errs errorList
	for _, e := range d.endedMoves {
		err := r.writer.recordOutcome(ctx, o, e)
		errs.add(err)
		if err == nil && e.mark.Done.IsZero() {
			r.recorder.Eventf(e.Deployment, o.Istio, corev1.EventTypeWarning, string(v1.ReasonMigrationFailed), "migrate",
				"moving to %s failed: %s", e.mark.Target, e.mark.Reason.Message)
		}
	}
	if err := errs.joined(); err != nil {
		return err
	}
	return r.writer.applySteps(ctx, o, o.run(), r.startable(d))
}

// startable leaves out what would restart pods before all API servers have seen where those belong now.
func (r *reconciler) startable(d decision) []passage.Step {
	if r.writer.propagationLeft() <= 0 {
		return d.Start
	}
	return slices.DeleteFunc(slices.Clone(d.Start), func(s passage.Step) bool { return s.Disruptive })
}
