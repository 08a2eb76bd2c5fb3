// Package workload is the controller of the passage revision that moves workloads to the active revision of their Istio:
// first the labels of namespaces, then Deployments, StatefulSets and DaemonSets, in batches.
package workload

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/workload/injection"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// +kubebuilder:rbac:groups=sailoperator.io,resources=istios;istiorevisions;istiorevisiontags,verbs=list;watch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istios/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=daemonsets;deployments;statefulsets,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller to the manager. The client reads Istios, revisions and tags from the manager's cache, its own
// writes included; workloadCache has workloads, with the options of the package inventory, and usageCache namespaces and
// pods, with those of the package usage, and what charts install.
func Setup(mgr ctrl.Manager, consistent client.Client, workloadCache, usageCache cache.Cache) error {
	ctx := context.Background()
	changes := newChanges()
	workloads := inventory.New(changes.add)
	synced, err := workloads.Watch(ctx, workloadCache, usageCache)
	if err != nil {
		return err
	}
	r := &reconciler{
		client: consistent, cache: mgr.GetCache(), live: mgr.GetAPIReader(), inventory: workloads, synced: synced, changes: changes,
		injection:       injection.NewChecker(mgr.GetClient(), usageCache, time.Now),
		writer:          newWriter(mgr.GetClient(), workloads, time.Now, writeConcurrency),
		recorder:        mgr.GetEventRecorder("fairlead.dev/" + v1.PassageMigration),
		now:             time.Now,
		lastStatusWrite: map[string]time.Time{},
		batches:         map[string]reportedBatches{},
		metrics:         newMetricsRecorder(),
	}
	r.writer.applied = r.recordAppliedEvents
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request { return r.migratingIstios(ctx) })
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("workload").
		WithLogConstructor(kube.Logger(mgr, "workload", v1.IstioKind)).
		For(&v1.Istio{}).
		Watches(&v1.IstioRevision{}, all, changed).
		Watches(&v1.IstioRevisionTag{}, all, changed).
		WatchesRawSource(source.Func(r.enqueueOnChange)).
		WatchesRawSource(source.Kind(usageCache, injection.Webhooks(), handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, _ *metav1.PartialObjectMetadata) []ctrl.Request {
				return r.migratingIstios(ctx)
			}),
			predicate.TypedGenerationChangedPredicate[*metav1.PartialObjectMetadata]{})).
		Complete(kube.Traced("workload", r))
}

type reconciler struct {
	client client.Client
	// cache is read in event handlers, which must not wait for our own writes.
	cache client.Reader
	// live is read before a move fails because of the state in a cache.
	live      client.Reader
	inventory *inventory.Tracker
	synced    func() bool
	changes   changes
	injection *injection.Checker
	writer    *writer
	recorder  events.EventRecorder
	now       func() time.Time
	metrics   *metricsRecorder
	marks     markCache
	events    kube.EventDedup[unstartedStep]

	mu sync.Mutex
	// lastStatusWrite is when the status of an Istio was last written.
	lastStatusWrite map[string]time.Time
	// batches has the batches that events have told of, by Istio.
	batches map[string]reportedBatches
	// tagRevisions has the revision of each tag when it was last observed.
	tagRevisions map[types.UID]string
}

// failureRequeueDelay is how long to wait after a write failed.
const failureRequeueDelay = 2 * time.Second

// How long changes of workloads are collected before a plan is made, during a migration and otherwise. A plan looks at all
// workloads, and nothing can start before a decisive change: progress shows in the counters of the status, which are not written
// more often.
const (
	debounceMoving   = 50 * time.Millisecond
	debounceIdle     = time.Second
	debounceProgress = counterStatusInterval
	progressInterval = time.Second
)

// changes are what has changed in the inventory since it was last looked at.
type changes struct{ decisive, progress chan struct{} }

func newChanges() changes { return changes{make(chan struct{}, 1), make(chan struct{}, 1)} }

// add does not block.
func (c changes) add(change inventory.Change) {
	to := c.decisive
	if change == inventory.Progress {
		to = c.progress
	}
	select {
	case to <- struct{}{}:
	default:
	}
}

// enqueueOnChange enqueues every Istio that moves workloads when the inventory changes: at once, or after a while.
func (r *reconciler) enqueueOnChange(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go r.enqueueOn(ctx, r.changes.decisive, debounceMoving, func(request ctrl.Request) {
		queue.AddAfter(request, r.debounce(ctx, request.Name))
	})
	go r.enqueueOn(ctx, r.changes.progress, progressInterval, func(request ctrl.Request) { queue.AddAfter(request, debounceProgress) })
	return nil
}

// enqueueOn enqueues changes within an interval together.
func (r *reconciler) enqueueOn(ctx context.Context, changed <-chan struct{}, interval time.Duration, enqueue func(ctrl.Request)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		for _, request := range r.migratingIstios(ctx) {
			enqueue(request)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}

func (r *reconciler) debounce(ctx context.Context, istio string) time.Duration {
	var i v1.Istio
	if err := r.cache.Get(ctx, client.ObjectKey{Name: istio}, &i); err == nil && i.Status.WorkloadMigration != nil &&
		i.Status.WorkloadMigration.State == v1.WorkloadMigrationStateInProgress {
		return 0
	}
	return debounceIdle
}

// migratingIstios are the Istios that move workloads, or were about to.
func (r *reconciler) migratingIstios(ctx context.Context) []ctrl.Request {
	return kube.RequestsMatching(ctx, r.cache, &v1.IstioList{}, migratesWorkloads)
}

func migratesWorkloads(istio *v1.Istio) bool {
	migration := istio.Spec.UpdateStrategy.WorkloadMigration
	return migration != nil && migration.Strategy != v1.WorkloadMigrationStrategyDisabled ||
		istio.Status.WorkloadMigration != nil ||
		meta.FindStatusCondition(istio.Status.Conditions, string(v1.ConditionWorkloadsMigrated)) != nil
}

// Reconcile observes, plans, applies and reports the workloads of one Istio.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if !r.synced() {
		// An object that the caches have not listed yet must not be taken for missing.
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	}
	o, err := r.observe(ctx, request.Name)
	if apierrors.IsNotFound(err) {
		r.forget(request.Name)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if !migratesWorkloads(o.Istio) {
		r.inventory.Await(o.Istio.Name, nil)
		r.metrics.forget(o.Istio.Name)
		return ctrl.Result{}, nil
	}
	r.observeTags(o)
	d := r.plan(ctx, o)
	if r.writer.dryRunRefused(ctx, o, d.Plan.Failures()) {
		r.writer.addRefusals(&o)
		d = r.plan(ctx, o)
	}
	if stale, err := r.hasStalePods(ctx, d.endedMoves); err != nil || stale {
		return ctrl.Result{RequeueAfter: failureRequeueDelay}, err
	}
	if held, err := r.checkInjection(ctx, &o, d); err != nil {
		return ctrl.Result{}, err
	} else if held {
		d = r.plan(ctx, o)
	}
	if len(d.Start) > 0 && !o.isRunning() {
		// The start is recorded before anything moves: every mark names the migration that it is part of.
		if err := r.recordStart(ctx, &o); err != nil {
			return installer.StatusError(nil, client.IgnoreNotFound(err))
		}
		d = r.plan(ctx, o)
	}
	r.observeBatches(o, d)
	applyErr := r.apply(ctx, o, d)
	if len(d.Start)+len(d.endedMoves) > 0 {
		o.Inventory = r.inventory.Snapshot()
		r.writer.addRefusals(&o)
		d = r.plan(ctx, o)
	}
	r.inventory.Await(o.Istio.Name, awaited(d.Wait))
	r.metrics.observe(o.Istio.Name, d.Decision, reasonOf(migratedConditionOf(o, d.Decision), d.Decision))
	r.recordUnstartedEvents(o, d.Plan.Failures())
	r.recordTagEvents(o, d)
	again, err := r.report(ctx, o, d)
	switch {
	case apierrors.IsConflict(applyErr) || apierrors.IsConflict(err):
		// Another client was faster: its write leads to a new plan, and is no error.
		return ctrl.Result{RequeueAfter: kube.ConflictRequeueDelay}, nil
	case err != nil:
		return ctrl.Result{}, errors.Join(applyErr, err)
	case applyErr != nil:
		// No exponential backoff: the readiness timeouts of started moves are running.
		ctrl.LoggerFrom(ctx).Error(applyErr, "a write failed and is retried")
		again, d.Start = failureRequeueDelay, nil
	}
	return ctrl.Result{RequeueAfter: r.requeueAfter(o, d, again)}, nil
}

func (r *reconciler) plan(ctx context.Context, o Observed) decision {
	defer kube.Span(&ctx, kube.StagePlan)()
	return decide(o, r.now())
}

// observeTags starts the time that the webhook of a tag takes to propagate when the tag has moved.
func (r *reconciler) observeTags(o Observed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	moved, revisions := false, make(map[types.UID]string, len(o.Tags))
	for i := range o.Tags {
		tag := &o.Tags[i]
		before, known := r.tagRevisions[tag.UID]
		moved = moved || known && before != tag.Status.IstioRevision
		revisions[tag.UID] = tag.Status.IstioRevision
	}
	if r.tagRevisions = revisions; moved {
		r.writer.recordRelabelTime()
	}
}

// awaited are the workloads that the next batch waits for.
func awaited(steps []passage.Step) []inventory.Owner {
	var owners []inventory.Owner
	for i := range steps {
		if o := steps[i].Object; steps[i].OverdueSince.IsZero() {
			owners = append(owners, inventory.Owner{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})
		}
	}
	return owners
}

func (r *reconciler) forget(istio string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.lastStatusWrite, istio)
	delete(r.batches, istio)
	r.events.Forget(func(about unstartedStep) bool { return about.istio == istio })
	r.metrics.forget(istio)
	r.inventory.Await(istio, nil)
	r.injection.Forget(istio)
}

// requeueAfter is when the passage of time may change the plan, or the status is due.
func (r *reconciler) requeueAfter(o Observed, d decision, status time.Duration) time.Duration {
	now := r.now()
	next := d.RequeueAt
	if status > 0 {
		next = earliest(next, now.Add(status))
	}
	next = earliest(earliest(next, d.deadline), r.writer.nextDryRun(o, d.Plan.Failures()))
	next = earliest(next, o.nextInjectionCheck())
	if len(d.Start) > 0 {
		// Our own writes enqueue nothing.
		next = earliest(next, now.Add(max(0, r.writer.propagationLeft())))
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}
