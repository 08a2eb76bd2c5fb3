// Package consumers switches the consumers of a mesh from kuma.io/service tags to MeshServices, in batches, and back. The
// switched consumers are recorded in MeshConsumerSlices, from which xds builds the configuration of their proxies.
package consumers

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Options are what the controller works with.
type Options struct {
	// Serving says that proxies are served, by this process or, if Reported, by others. Without it, the fields below may be
	// empty.
	Serving, Reported bool
	// Connection returns the xDS state of a proxy, and Proxies the proxies of a mesh.
	Connection func(model.ProxyID) model.Connection
	Proxies    func(mesh string) []model.Proxy
	// Sent returns the consumers of a mesh that are switched in the published configurations, which Connection refers to,
	// and false before all proxies of the mesh have one. Without it, an ACK of an older configuration would count as one of
	// the switch.
	Sent func(mesh string) (consumers map[string]bool, ok bool)
	// Recorded says whether all that publish configurations know MeshConsumerSlices by which these consumers are switched.
	Recorded func(mesh string, switched map[string]bool) bool
	// Changes registers a function to call when the connection of a proxy changes.
	Changes func(func(model.ProxyID))
	// Timeout is how long proxies may take to acknowledge; the default is a minute.
	Timeout time.Duration
}

const defaultTimeout = time.Minute

const (
	ackDebounce         = 50 * time.Millisecond
	consumerDebounce    = time.Second
	publishRequeueDelay = 100 * time.Millisecond
	resyncInterval      = time.Minute
	// An ACK may come between the observation and the watch.
	ackResyncInterval = 5 * time.Second
)

// +kubebuilder:rbac:groups=kuma.io,resources=meshes;dataplanes,verbs=list;watch
// +kubebuilder:rbac:groups=fairlead.dev,resources=meshconsumerslices,verbs=list;watch;create;update;delete
// +kubebuilder:rbac:groups=kuma.io,resources=meshes/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller to the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	// A batch is recorded in several slices: a decision from a cache that lacks one of them would start too many consumers.
	c, err := kube.NewConsistentClient(mgr, client.CacheOptions{Reader: mgr.GetCache()})
	if err != nil {
		return err
	}
	r := &reconciler{
		client: c, recorder: mgr.GetEventRecorder("fairlead.dev/" + Passage), options: o, started: sync.OnceValue(time.Now),
		absent: absentMeshes{},
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("mesh-consumers").
		WithLogConstructor(kube.Logger(mgr, "consumers", kumav1alpha1.MeshKind)).
		For(&kumav1alpha1.Mesh{}).
		Watches(&fairleadv1alpha1.MeshConsumerSlice{}, kube.EnqueueAfter(ackDebounce, meshOf)).
		Watches(&kumav1alpha1.Dataplane{}, kube.EnqueueAfter(consumerDebounce, meshOf), builder.WithPredicates(consumerChanged))
	if o.Serving && o.Changes != nil {
		b = b.WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			r.acks.enqueue(o.Changes, q)
			return nil
		}))
	}
	if err := b.Complete(kube.Traced("mesh-consumers", kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: r})); err != nil {
		return fmt.Errorf("set up the consumers controller: %w", err)
	}
	return nil
}

type reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	options  Options
	acks     ackWatcher
	// started is when this process began to serve.
	started func() time.Time
	// absent is used by Reconcile only, which has one worker.
	absent absentMeshes
}

// Reconcile observes, plans, applies and reports one mesh.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	started, now := r.started(), time.Now()
	mesh := &kumav1alpha1.Mesh{}
	if err := r.client.Get(ctx, request.NamespacedName, mesh); err != nil {
		r.acks.watch(request.Name, nil)
		deleteMetrics(request.Name)
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, err
		}
		again, err := r.forgetAbsent(ctx, request.Name, now)
		return ctrl.Result{RequeueAfter: again}, err
	}
	delete(r.absent, mesh.Name)
	recorded, err := listSlices(ctx, r.client, mesh.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	_, asked := mesh.Annotations[kumav1alpha1.AnnotationMigrate]
	if !asked && mesh.Status.Migration == nil && len(recorded) == 0 || !mesh.DeletionTimestamp.IsZero() {
		r.acks.watch(mesh.Name, nil)
		deleteMetrics(mesh.Name)
		return ctrl.Result{}, nil
	}
	o, ok := r.observe(ctx, mesh, recorded)
	if !ok {
		// A proxy without a published configuration must not count as absent.
		return ctrl.Result{RequeueAfter: publishRequeueDelay}, nil
	}
	if IsInStatus(mesh) {
		err := r.moveRecord(ctx, mesh, recorded, now)
		return ctrl.Result{RequeueAfter: publishRequeueDelay}, client.IgnoreNotFound(err)
	}
	o.Started = started
	d := plan(ctx, o, now)
	// Watch the proxies before the switch is published, so that no acknowledgement is missed.
	r.acks.watch(mesh.Name, d.Watched)
	changed, err := r.apply(ctx, mesh, recorded, d, now)
	if changed {
		r.recordEvents(mesh, d.Events)
		for _, step := range startedSteps(o.Mesh.Status.Migration, d.Record) {
			kube.LogStep(ctx, "meshservice", step, "mesh", mesh.Name)
		}
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	setMetrics(mesh.Name, d.Record, d.Condition)
	return ctrl.Result{RequeueAfter: requeueAfter(d, now)}, nil
}

func plan(ctx context.Context, o Observed, now time.Time) Decision {
	defer kube.Span(&ctx, kube.StagePlan)()
	return Decide(o, now)
}

// requeueAfter is the delay until the next reconcile without an event.
func requeueAfter(d Decision, now time.Time) time.Duration {
	wait := resyncInterval
	switch {
	case d.Unsent:
		wait = publishRequeueDelay
	case len(d.Watched) > 0:
		wait = ackResyncInterval
	}
	if !d.RequeueAt.IsZero() {
		wait = min(wait, max(d.RequeueAt.Sub(now), time.Millisecond))
	}
	return wait
}
