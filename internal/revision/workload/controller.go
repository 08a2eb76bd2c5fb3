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
	synced, err := workloads.Feed(ctx, deployments, users)
	if err != nil {
		return err
	}
	r := &reconciler{
		client: consistent, cache: mgr.GetCache(), live: mgr.GetAPIReader(), fleet: workloads, synced: synced, news: news,
		writer:   newWriter(mgr.GetClient(), workloads, time.Now, writers),
		recorder: mgr.GetEventRecorder("fairlead.dev/" + v1.PassageMigration),
		now:      time.Now,
		written:  map[string]time.Time{}, announced: map[string]map[passage.Object]string{},
		meters: newMeters(),
	}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request { return r.concerned(ctx) })
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("migration").
		WithLogConstructor(installer.Logger(mgr, v1.IstioKind)).
		For(&v1.Istio{}).
		Watches(&v1.IstioRevision{}, all, changed).
		Watches(&v1.IstioRevisionTag{}, all, changed).
		WatchesRawSource(source.Func(r.follow)).
		Complete(r)
}

type reconciler struct {
	client client.Client
	// cache is read where waiting for our own writes would hold up events.
	cache client.Reader
	// live is read before anything is given up because of what a cache says.
	live     client.Reader
	fleet    *inventory.Fleet
	synced   func() bool
	news     <-chan struct{}
	writer   *writer
	recorder events.EventRecorder
	now      func() time.Time
	meters   *meters
	marks    markReader

	mu sync.Mutex
	// written is when the status of an Istio was last written.
	written map[string]time.Time
	// announced has, by Istio, what was told of that could not be started, and why.
	announced map[string]map[passage.Object]string
}

// How long news of workloads gather before a plan is made, while something moves and while nothing does.
const (
	gatherMoving = 50 * time.Millisecond
	gatherIdle   = time.Second
)

// How often the status is written at most: when a batch ends or begins, and when no more than counters have changed.
const (
	boundaryPause = time.Second
	counterPause  = 5 * time.Second
)

// conflictPause lets the caches see what somebody else has just written.
const conflictPause = 100 * time.Millisecond

// failurePause is how long to wait after the API server could not write something.
const failurePause = 2 * time.Second

// follow asks for a reconcile of every Istio that moves workloads when there is news of them.
func (r *reconciler) follow(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.news:
			}
			for _, request := range r.concerned(ctx) {
				queue.AddAfter(request, r.gather(ctx, request.Name))
			}
			// What comes in the meantime is told of together.
			select {
			case <-ctx.Done():
				return
			case <-time.After(gatherMoving):
			}
		}
	}()
	return nil
}

func (r *reconciler) gather(ctx context.Context, istio string) time.Duration {
	var i v1.Istio
	if err := r.cache.Get(ctx, client.ObjectKey{Name: istio}, &i); err == nil && i.Status.WorkloadMigration != nil &&
		i.Status.WorkloadMigration.State == v1.WorkloadMigrationStateInProgress {
		return 0
	}
	return gatherIdle
}

// concerned are the Istios that move workloads, or were about to.
func (r *reconciler) concerned(ctx context.Context) []ctrl.Request {
	var istios v1.IstioList
	if err := r.cache.List(ctx, &istios, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Istios that workloads concern")
	}
	var requests []ctrl.Request
	for i := range istios.Items {
		if istio := &istios.Items[i]; concerns(istio) {
			requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: istio.Name}})
		}
	}
	return requests
}

func concerns(istio *v1.Istio) bool {
	migration := istio.Spec.UpdateStrategy.WorkloadMigration
	return migration != nil && migration.Strategy != v1.WorkloadMigrationStrategyDisabled ||
		istio.Status.WorkloadMigration != nil ||
		meta.FindStatusCondition(istio.Status.Conditions, string(v1.ConditionWorkloadsMigrated)) != nil
}

// Reconcile observes, plans, applies and reports the workloads of one Istio.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if !r.synced() {
		// What has not been heard of yet must not be taken for not being there.
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	o, err := r.observe(ctx, request.Name)
	if apierrors.IsNotFound(err) {
		r.forget(request.Name)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if !concerns(o.Istio) {
		r.meters.forget(o.Istio.Name)
		return ctrl.Result{}, nil
	}
	d := decide(o, r.now())
	if r.writer.probe(ctx, o, d.Plan.Failures()) {
		r.writer.refusals(&o)
		d = decide(o, r.now())
	}
	if stale, err := r.hasStalePods(ctx, d.ended); err != nil || stale {
		return ctrl.Result{RequeueAfter: failurePause}, err
	}
	if len(d.Start) > 0 && !o.running() {
		// The beginning is written down before anything moves: every move names the migration that it is part of.
		if err := r.begin(ctx, &o); err != nil {
			return installer.Unreported(nil, client.IgnoreNotFound(err))
		}
		d = decide(o, r.now())
	}
	applyErr := r.apply(ctx, o, d)
	if len(d.Start)+len(d.ended) > 0 {
		o.Fleet = r.fleet.Picture()
		r.writer.refusals(&o)
		d = decide(o, r.now())
	}
	r.meters.observe(o.Istio.Name, d.Decision)
	r.announceUnstarted(o, d.Plan.Failures())
	again, err := r.report(ctx, o, d)
	switch {
	case apierrors.IsConflict(applyErr) || apierrors.IsConflict(err):
		// Somebody was faster: what they wrote is a matter for a new plan, not an error.
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	case err != nil:
		return ctrl.Result{}, errors.Join(applyErr, err)
	case applyErr != nil:
		// Not to be put off for longer and longer: time runs for what is underway.
		ctrl.LoggerFrom(ctx).Error(applyErr, "what could not be written is tried again")
		again = failurePause
	}
	return ctrl.Result{RequeueAfter: r.lookAgain(o, d, again)}, nil
}

func (r *reconciler) observe(ctx context.Context, name string) (Observed, error) {
	o, err := Observe(ctx, r.client, name, r.fleet.Picture())
	if err == nil {
		o.marks = &r.marks
		r.writer.refusals(&o)
	}
	return o, err
}

// hasStalePods tells whether one of the moves would fail only because the cache does not show its new pods yet.
func (r *reconciler) hasStalePods(ctx context.Context, ended []ending) (bool, error) {
	for _, e := range ended {
		if e.mark.Reason == nil || v1.Reason(e.mark.Reason.Code) != v1.ReasonWrongRevision {
			continue
		}
		pods, err := inventory.CountPods(ctx, r.live, inventory.DeploymentOf(e.Deployment))
		if err != nil {
			return false, err
		}
		if len(othersThan(pods, e.mark.Target)) == 0 {
			return true, nil
		}
	}
	return false, nil
}

func (r *reconciler) begin(ctx context.Context, o *Observed) error {
	now, told := r.now(), conditionOfIstio(o.Istio)
	o.Istio = o.Istio.DeepCopy()
	o.Istio.Status.WorkloadMigration = began(*o, now)
	d := decide(*o, now)
	status, condition := statusOf(*o, d, now), conditionAt(*o, d, told, now)
	if err := r.write(ctx, o.Istio, status, condition); err != nil {
		return err
	}
	r.writer.settling()
	o.Istio.Status.WorkloadMigration = status
	meta.SetStatusCondition(&o.Istio.Status.Conditions, *condition)
	r.recorder.Eventf(o.Istio, nil, corev1.EventTypeNormal, "MigrationStarted", "migrate", "moving workloads to %s", o.Target.Name)
	return nil
}

func conditionOfIstio(istio *v1.Istio) *metav1.Condition {
	return meta.FindStatusCondition(istio.Status.Conditions, string(v1.ConditionWorkloadsMigrated))
}

// apply writes down what has ended, and only then starts what is to be started: from the next batch it is concluded that
// those before it have settled, each as its mark says.
func (r *reconciler) apply(ctx context.Context, o Observed, d decision) error {
	var errs collected
	for _, e := range d.ended {
		err := r.writer.remember(ctx, o, e)
		errs.add(err)
		if err == nil && e.mark.Done.IsZero() {
			r.recorder.Eventf(e.Deployment, o.Istio, corev1.EventTypeWarning, string(v1.ReasonMigrationFailed), "migrate",
				"moving to %s failed: %s", e.mark.Target, e.mark.Reason.Message)
		}
	}
	if err := errs.joined(); err != nil {
		return err
	}
	return r.writer.start(ctx, o, o.run(), r.startable(d))
}

// startable leaves out what would restart pods before all API servers have seen where those belong now.
func (r *reconciler) startable(d decision) []passage.Step {
	if r.writer.settled() <= 0 {
		return d.Start
	}
	return slices.DeleteFunc(slices.Clone(d.Start), func(s passage.Step) bool { return s.Disruptive })
}

// report writes the status, if it says anything new, and tells after how long it should be written if not now.
func (r *reconciler) report(ctx context.Context, o Observed, d decision) (time.Duration, error) {
	now := r.now()
	before, told := o.Istio.Status.WorkloadMigration, conditionOfIstio(o.Istio)
	status, condition := statusOf(o, d, now), conditionAt(o, d, told, now)
	news := newsIn(before, status)
	switch {
	case told == nil && condition == nil:
	case told == nil || condition == nil || told.Status != condition.Status || told.Reason != condition.Reason:
		news = turned
	case !equality.Semantic.DeepEqual(told, condition):
		news = max(news, counters)
	}
	if wait := r.wait(o.Istio.Name, news, now); news == nothing || wait > 0 {
		return wait, nil
	}
	if err := r.write(ctx, o.Istio, status, condition); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	r.announce(o.Istio, before, status, told, condition)
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

func (r *reconciler) write(ctx context.Context, istio *v1.Istio, status *v1.WorkloadMigrationStatus, condition *metav1.Condition) error {
	err := r.client.Status().Apply(ctx, statusConfigurationOf(istio, status, condition),
		client.FieldOwner(v1.FieldOwnerMigration), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write how far the workloads of Istio %s are: %w", istio.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[istio.Name] = r.now()
	return nil
}

func (r *reconciler) forget(istio string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, istio)
	delete(r.announced, istio)
	r.meters.forget(istio)
}

// lookAgain is when time alone may change the plan, or the status is due.
func (r *reconciler) lookAgain(o Observed, d decision, status time.Duration) time.Duration {
	now := r.now()
	next := d.LookAgain
	if status > 0 {
		next = sooner(next, now.Add(status))
	}
	next = sooner(sooner(next, d.deadline), r.writer.nextProbe(o, d.Plan.Failures()))
	if settled := r.writer.settled(); settled > 0 && len(d.Start) > 0 {
		next = sooner(next, now.Add(settled))
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}
