package migration

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/migration/fleet"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// writers is how many objects are written at the same time: as many as keep an API server busy without crowding out
// others.
const writers = 8

// writer is what moves workloads, one write each. Every write is about the object as it was seen when it was decided on:
// if that has changed since, nothing is written and the next plan decides anew.
type writer struct {
	client client.Client
	fleet  *fleet.Fleet
	now    func() time.Time
	// atOnce is how many objects are written at the same time.
	atOnce int

	mu sync.Mutex
	// refused has what would not let itself be written, to be tried again after a while.
	refused map[types.UID]refusal
	// failing has since when an object could not be written for reasons that may pass.
	failing map[types.UID]time.Time
	// unwritten has how moves have ended that could not be written down.
	unwritten map[types.UID]Mark
	// relabelled is when the label of a namespace was last moved, or a migration began.
	relabelled time.Time
}

func newWriter(c client.Client, workloads *fleet.Fleet, now func() time.Time, atOnce int) *writer {
	return &writer{
		client: c, fleet: workloads, now: now, atOnce: atOnce,
		refused: map[types.UID]refusal{}, failing: map[types.UID]time.Time{}, unwritten: map[types.UID]Mark{},
	}
}

type refusal struct {
	reason passage.Reason
	at     time.Time
	// retry is the request to try again that was known then.
	istio, retry string
}

const (
	// refusalHolds is how long a refusal is believed: policies change too.
	refusalHolds = 15 * time.Minute
	// troublePasses is how long an object is tried, when it fails in a way that may pass, before others are let past it.
	troublePasses = 10 * time.Second
	// labelsSettle is how long API servers may take to see the labels of namespaces and the webhooks of tags that were
	// just moved. A pod that is made before that gets the sidecar of the old revision.
	labelsSettle = time.Second
)

// start carries out steps. What an API server refuses for good is remembered, and is no error.
func (w *writer) start(ctx context.Context, o Observed, run time.Time, steps []passage.Step) error {
	var group errgroup.Group
	group.SetLimit(w.atOnce)
	var errs collected
	log := ctrl.LoggerFrom(ctx)
	for _, step := range steps {
		group.Go(func() error {
			var err error
			if step.Object.Kind == kindDeployment {
				err = w.move(ctx, o, deploymentOf(o.Fleet, step.Object), step, run)
			} else {
				err = w.relabel(ctx, o, step)
			}
			if err == nil {
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

// deploymentOf finds one where they are in the order of their namespaces and names.
func deploymentOf(picture fleet.Picture, object passage.Object) *appsv1.Deployment {
	i, _ := slices.BinarySearchFunc(picture.Deployments, object, func(d *appsv1.Deployment, object passage.Object) int {
		return cmp.Or(strings.Compare(d.Namespace, object.Namespace), strings.Compare(d.Name, object.Name))
	})
	return picture.Deployments[i]
}

// collected are errors of several writers.
type collected struct {
	mu   sync.Mutex
	errs []error
}

func (c *collected) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
}

func (c *collected) joined() error { return errors.Join(c.errs...) }

// relabel moves the label of a namespace to the target.
func (w *writer) relabel(ctx context.Context, o Observed, step passage.Step) error {
	seen := o.Fleet.Namespaces[step.Object.Name]
	labels := map[string]any{v1.LabelRevision: step.To}
	if _, found := seen.Labels[v1.LabelInjection]; found {
		labels[v1.LabelInjection] = nil
	}
	ns := usage.MetadataOf("Namespace")
	ns.Name = step.Object.Name
	err := w.patch(ctx, ns, seen.UID, seen.ResourceVersion, map[string]any{"labels": labels}, nil)
	if err == nil {
		w.fleet.WroteNamespace(ns)
		w.settling()
	}
	return w.heed(o, err, seen.UID, "move the label of namespace %s", ns.Name)
}

// move restarts a Deployment on the target, with the mark that says so.
func (w *writer) move(ctx context.Context, o Observed, seen *appsv1.Deployment, step passage.Step, run time.Time) error {
	now := w.now()
	mark := Mark{
		UID: seen.UID, Retry: o.retry(), Istio: o.Istio.Name, Target: step.To, From: step.From, Action: step.Action,
		Run: run, Batch: step.Batch, Started: now, Generation: seen.Generation + 1,
	}
	template := map[string]any{}
	if step.Action == ActionRelabel {
		template["labels"] = map[string]any{v1.LabelRevision: step.To}
	} else {
		template["annotations"] = map[string]any{v1.AnnotationRestartedAt: now.UTC().Format(time.RFC3339)}
	}
	err := w.mark(ctx, seen, mark, map[string]any{"template": map[string]any{"metadata": template}})
	return w.heed(o, err, seen.UID, "move Deployment %s/%s", seen.Namespace, seen.Name)
}

// remember writes down on a Deployment how its move has ended. It restarts nothing.
func (w *writer) remember(ctx context.Context, o Observed, e ending) error {
	err := w.mark(ctx, e.Deployment, e.mark, nil)
	if refusedForGood(err) {
		w.mu.Lock()
		w.unwritten[e.UID] = e.mark
		w.mu.Unlock()
	}
	return w.heed(o, err, e.UID, "write down how the move of Deployment %s/%s has ended", e.Namespace, e.Name)
}

func (w *writer) mark(ctx context.Context, seen *appsv1.Deployment, mark Mark, spec map[string]any) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name}}
	metadata := map[string]any{"annotations": map[string]any{v1.AnnotationMigration: mark.String()}}
	if err := w.patch(ctx, d, seen.UID, seen.ResourceVersion, metadata, spec); err != nil {
		return err
	}
	w.fleet.Wrote(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.unwritten, seen.UID)
	return nil
}

func (w *writer) patch(ctx context.Context, object client.Object, uid types.UID, version string, metadata, spec map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = uid, version
	change := map[string]any{"metadata": metadata}
	if spec != nil {
		change["spec"] = spec
	}
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode a change: %w", err)
	}
	return w.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1.FieldOwnerMigration))
}

// heed tells errors that concern one object, and would be the same next time, from those that do not.
func (w *writer) heed(o Observed, err error, uid types.UID, doing string, args ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil, apierrors.IsNotFound(err):
		delete(w.failing, uid)
		return nil
	case refusedForGood(err):
	case apierrors.IsConflict(err), ofTheServer(err):
		return fmt.Errorf(doing+": %w", append(args, err)...)
	default:
		since, known := w.failing[uid]
		if !known {
			since = w.now()
			w.failing[uid] = since
		}
		if w.now().Sub(since) < troublePasses {
			return fmt.Errorf(doing+": %w", append(args, err)...)
		}
	}
	delete(w.failing, uid)
	w.refused[uid] = refusal{
		reason: passage.Because(v1.ReasonRefused, "the API server refused it: %v", err), at: w.now(),
		istio: o.Istio.Name, retry: o.retry(),
	}
	return nil
}

// settling notes that API servers have something to see before pods are made.
func (w *writer) settling() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relabelled = w.now()
}

// settled is after how long all API servers have seen it.
func (w *writer) settled() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return labelsSettle - w.now().Sub(w.relabelled)
}

// refusals are those that still hold, as a plan takes them, and the marks that could not be written. They end after a
// while, or when somebody asks to try again.
func (w *writer) refusals(o *Observed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o.Refused, o.Unwritten = map[types.UID]passage.Reason{}, maps.Clone(w.unwritten)
	for uid, r := range w.refused {
		if w.now().Sub(r.at) > refusalHolds || r.istio == o.Istio.Name && r.retry != o.retry() {
			delete(w.refused, uid)
			continue
		}
		o.Refused[uid] = r.reason
	}
}
