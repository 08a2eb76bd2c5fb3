// Package workload is the passage that moves workloads to the active revision of their Istio: first the labels of
// namespaces, then Deployments, a few at a time.
package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// +kubebuilder:rbac:groups=sailoperator.io,resources=istios;istiorevisions;istiorevisiontags,verbs=list;watch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istios/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller to the manager. The client reads Istios, revisions and tags from the manager's cache, its own
// writes included; users is a cache of namespaces and pods as the package usage reads them.
func Setup(mgr ctrl.Manager, consistent client.Client, users cache.Cache) error {
	ctx := context.Background()
	deployments, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: inventory.CacheOptions(), ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return fmt.Errorf("create a cache of Deployments: %w", err)
	}
	if err := mgr.Add(deployments); err != nil {
		return fmt.Errorf("add the cache of Deployments: %w", err)
	}
	news := make(chan struct{}, 1)
	workloads := inventory.New(func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	synced, err := workloads.Watch(ctx, deployments, users)
	if err != nil {
		return err
	}
	r := &reconciler{
		client: consistent, cache: mgr.GetCache(), live: mgr.GetAPIReader(), inventory: workloads, synced: synced, changes: news,
		writer:          newWriter(mgr.GetClient(), workloads, time.Now, writeConcurrency),
		recorder:        mgr.GetEventRecorder("fairlead.dev/" + v1.PassageMigration),
		now:             time.Now,
		lastStatusWrite: map[string]time.Time{}, reportedFailures: map[string]map[passage.Object]string{},
		metrics: newMetricsRecorder(),
	}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request { return r.migratingIstios(ctx) })
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("migration").
		WithLogConstructor(installer.Logger(mgr, v1.IstioKind)).
		For(&v1.Istio{}).
		Watches(&v1.IstioRevision{}, all, changed).
		Watches(&v1.IstioRevisionTag{}, all, changed).
		WatchesRawSource(source.Func(r.enqueueOnChange)).
		Complete(r)
}

type reconciler struct {
	client client.Client
	// cache is read where waiting for our own writes would hold up events.
	cache client.Reader
	// live is read before anything is given up because of what a cache says.
	live      client.Reader
	inventory *inventory.Tracker
	synced    func() bool
	changes   <-chan struct{}
	writer    *writer
	recorder  events.EventRecorder
	now       func() time.Time
	metrics   *metricsRecorder
	marks     markCache

	mu sync.Mutex
	// lastStatusWrite is when the status of an Istio was last written.
	lastStatusWrite map[string]time.Time
	// reportedFailures has, by Istio, what was told of that could not be started, and why.
	reportedFailures map[string]map[passage.Object]string
}

// How long news of workloads gather before a plan is made, while something moves and while nothing does.
const (
	debounceMoving = 50 * time.Millisecond
	debounceIdle   = time.Second
)

// How often the status is written at most: when a batch ends or begins, and when no more than counters have changed.
const (
	batchStatusInterval   = time.Second
	counterStatusInterval = 5 * time.Second
)

// conflictRequeueDelay lets the caches see what somebody else has just written.
const conflictRequeueDelay = 100 * time.Millisecond

// failureRequeueDelay is how long to wait after the API server could not write something.
const failureRequeueDelay = 2 * time.Second

// enqueueOnChange asks for a reconcile of every Istio that moves workloads when there is news of them.
func (r *reconciler) enqueueOnChange(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.changes:
			}
			for _, request := range r.migratingIstios(ctx) {
				queue.AddAfter(request, r.debounce(ctx, request.Name))
			}
			// What comes in the meantime is told of together.
			select {
			case <-ctx.Done():
				return
			case <-time.After(debounceMoving):
			}
		}
	}()
	return nil
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
	var istios v1.IstioList
	if err := r.cache.List(ctx, &istios, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list Istios that move workloads")
	}
	var requests []ctrl.Request
	for i := range istios.Items {
		if istio := &istios.Items[i]; migratesWorkloads(istio) {
			requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: istio.Name}})
		}
	}
	return requests
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
		// What has not been heard of yet must not be taken for not being there.
		return ctrl.Result{RequeueAfter: conflictRequeueDelay}, nil
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
		r.metrics.forget(o.Istio.Name)
		return ctrl.Result{}, nil
	}
	d := decide(o, r.now())
	if r.writer.dryRunRefused(ctx, o, d.Plan.Failures()) {
		r.writer.addRefusals(&o)
		d = decide(o, r.now())
	}
	if stale, err := r.hasStalePods(ctx, d.endedMoves); err != nil || stale {
		return ctrl.Result{RequeueAfter: failureRequeueDelay}, err
	}
	if len(d.Start) > 0 && !o.running() {
		// The beginning is written down before anything moves: every move names the migration that it is part of.
		if err := r.recordStart(ctx, &o); err != nil {
			return installer.StatusError(nil, client.IgnoreNotFound(err))
		}
		d = decide(o, r.now())
	}
	applyErr := r.apply(ctx, o, d)
	if len(d.Start)+len(d.endedMoves) > 0 {
		o.Inventory = r.inventory.Snapshot()
		r.writer.addRefusals(&o)
		d = decide(o, r.now())
	}
	r.metrics.observe(o.Istio.Name, d.Decision)
	r.recordUnstartedEvents(o, d.Plan.Failures())
	again, err := r.report(ctx, o, d)
	switch {
	case apierrors.IsConflict(applyErr) || apierrors.IsConflict(err):
		// Somebody was faster: what they wrote is a matter for a new plan, not an error.
		return ctrl.Result{RequeueAfter: conflictRequeueDelay}, nil
	case err != nil:
		return ctrl.Result{}, errors.Join(applyErr, err)
	case applyErr != nil:
		// Not to be put off for longer and longer: time runs for what is underway.
		ctrl.LoggerFrom(ctx).Error(applyErr, "a write failed and is retried")
		again = failureRequeueDelay
	}
	return ctrl.Result{RequeueAfter: r.requeueAfter(o, d, again)}, nil
}

func (r *reconciler) observe(ctx context.Context, name string) (Observed, error) {
	o, err := Observe(ctx, r.client, name, r.inventory.Snapshot())
	if err == nil {
		o.marks = &r.marks
		r.writer.addRefusals(&o)
	}
	return o, err
}

// hasStalePods tells whether one of the moves would fail only because the cache does not show its new pods yet.
func (r *reconciler) hasStalePods(ctx context.Context, ended []endedMove) (bool, error) {
	for _, e := range ended {
		if e.mark.Reason == nil || v1.Reason(e.mark.Reason.Code) != v1.ReasonWrongRevision {
			continue
		}
		pods, err := inventory.CountPods(ctx, r.live, inventory.DeploymentOf(e.Deployment))
		if err != nil {
			return false, err
		}
		if len(otherRevisions(pods, e.mark.Target)) == 0 {
			return true, nil
		}
	}
	return false, nil
}

func (r *reconciler) recordStart(ctx context.Context, o *Observed) error {
	now, told := r.now(), migratedCondition(o.Istio)
	o.Istio = o.Istio.DeepCopy()
	o.Istio.Status.WorkloadMigration = startedStatus(*o, now)
	d := decide(*o, now)
	status, condition := statusOf(*o, d, now), conditionAt(*o, d, told, now)
	if err := r.writeStatus(ctx, o.Istio, status, condition); err != nil {
		return err
	}
	r.writer.recordRelabelTime()
	o.Istio.Status.WorkloadMigration = status
	meta.SetStatusCondition(&o.Istio.Status.Conditions, *condition)
	r.recorder.Eventf(o.Istio, nil, corev1.EventTypeNormal, "MigrationStarted", "migrate", "moving workloads to %s", o.Target.Name)
	return nil
}

func migratedCondition(istio *v1.Istio) *metav1.Condition {
	return meta.FindStatusCondition(istio.Status.Conditions, string(v1.ConditionWorkloadsMigrated))
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

// report writes the status, if it says anything new, and tells after how long it should be written if not now.
func (r *reconciler) report(ctx context.Context, o Observed, d decision) (time.Duration, error) {
	now := r.now()
	before, told := o.Istio.Status.WorkloadMigration, migratedCondition(o.Istio)
	status, condition := statusOf(o, d, now), conditionAt(o, d, told, now)
	news := statusChangeOf(before, status)
	switch {
	case told == nil && condition == nil:
	case told == nil || condition == nil || told.Status != condition.Status || told.Reason != condition.Reason:
		news = stateChanged
	case !equality.Semantic.DeepEqual(told, condition):
		news = max(news, countersChanged)
	}
	if wait := r.statusDelay(o.Istio.Name, news, now); news == unchanged || wait > 0 {
		return wait, nil
	}
	if err := r.writeStatus(ctx, o.Istio, status, condition); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	r.recordStatusEvent(o.Istio, before, status, told, condition)
	return 0, nil
}

// conditionAt is the condition with the time since when it is so.
func conditionAt(o Observed, d decision, told *metav1.Condition, now time.Time) *metav1.Condition {
	condition := conditionFor(o, d.Decision)
	if condition == nil {
		return nil
	}
	condition.LastTransitionTime = metav1.NewTime(now)
	if told != nil && told.Status == condition.Status {
		condition.LastTransitionTime = told.LastTransitionTime
	}
	return condition
}

func (r *reconciler) writeStatus(ctx context.Context, istio *v1.Istio, status *v1.WorkloadMigrationStatus, condition *metav1.Condition) error {
	err := r.client.Status().Apply(ctx, statusConfigurationOf(istio, status, condition),
		client.FieldOwner(v1.FieldOwnerMigration), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the migration status of Istio %s: %w", istio.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastStatusWrite[istio.Name] = r.now()
	return nil
}

func (r *reconciler) forget(istio string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.lastStatusWrite, istio)
	delete(r.reportedFailures, istio)
	r.metrics.forget(istio)
}

// requeueAfter is when time alone may change the plan, or the status is due.
func (r *reconciler) requeueAfter(o Observed, d decision, status time.Duration) time.Duration {
	now := r.now()
	next := d.LookAgain
	if status > 0 {
		next = earliest(next, now.Add(status))
	}
	next = earliest(earliest(next, d.deadline), r.writer.nextDryRun(o, d.Plan.Failures()))
	if settled := r.writer.propagationLeft(); settled > 0 && len(d.Start) > 0 {
		next = earliest(next, now.Add(settled))
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}
