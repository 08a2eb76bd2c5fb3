// Package generate keeps in the mesh what runs: MeshServices for Services and for what Dataplanes serve, Dataplanes for pods,
// and the addresses and hostnames of services.
package generate

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// FieldOwner is who writes, as managed fields tell it.
const FieldOwner = "fairlead/meshservice"

// Connections tells how proxies stand with their configuration, and when that changes.
type Connections interface {
	Connection(model.ProxyID) model.Connection
	OnChange(func(model.ProxyID))
}

// Options of the registrar.
type Options struct {
	desired.ZoneInfo
	// Connections, if not nil, are counted in the status of MeshServices.
	Connections Connections
	// Grace is how long something stays that nothing serves any more.
	Grace time.Duration
	// Ranges are those that addresses are taken from; empty ones stand for the defaults.
	Ranges desired.Ranges
}

// reconciler is what its controllers share.
type reconciler struct {
	Options
	// client reads from the manager's cache, its own writes included.
	client client.Client
	// cache is read where waiting for own writes would hold up events.
	cache client.Reader
	// workloads reads pods, as far as they matter here, namespaces, of which there is the metadata only, and ConfigMaps of tags.
	workloads cache.Cache
	// live asks the API server, and records is how ConfigMaps are written there: nobody's are cached but those of tags.
	live     client.Reader
	records  client.Writer
	recorder events.EventRecorder
	now      func() time.Time
	events   *eventDedup
	// stalls is for the one that looks after Meshes.
	stalls stallDetector
}

// +kubebuilder:rbac:groups=kuma.io,resources=meshes;zoneingresses;meshmultizoneservices;hostnamegenerators;meshtimeouts;meshretries;meshcircuitbreakers;meshloadbalancingstrategies;meshhttproutes;meshtcproutes,verbs=get;list;watch
// +kubebuilder:rbac:groups=kuma.io,resources=dataplanes;meshservices,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=kuma.io,resources=meshes/status;meshservices/status;meshmultizoneservices/status;meshtimeouts/status;meshretries/status;meshcircuitbreakers/status;meshloadbalancingstrategies/status;meshhttproutes/status;meshtcproutes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;pods;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controllers to the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	options.Ranges = options.Ranges.OrDefaults()
	ctx := context.Background()
	r := &reconciler{
		Options: options, cache: mgr.GetCache(), live: mgr.GetAPIReader(), records: mgr.GetClient(), now: time.Now, events: newEventDedup(), stalls: stallDetector{},
		recorder: mgr.GetEventRecorder("fairlead.dev/meshservice"),
	}
	var err error
	r.client, err = client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: mgr.GetCache(), EnableReadYourWritesConsistency: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	if r.workloads, err = newWorkloadCache(mgr, options.ZoneInfo); err != nil {
		return err
	}
	if err := r.setupIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	setups := []func(ctrl.Manager) error{r.setupServices, r.setupPods}
	if options.IsUniversal() {
		setups = []func(ctrl.Manager) error{r.setupUniversal}
	}
	setups = append(setups, r.setupTags, r.setupStatuses, r.setupMeshes, r.setupPolicies, r.setupGenerators)
	for _, setup := range setups {
		if err := setup(mgr); err != nil {
			return err
		}
	}
	return nil
}

// maxConcurrent is how many objects of a kind are looked at at the same time.
const maxConcurrent = 4

func options(workers int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: workers, RateLimiter: rateLimiter()}
}

// rateLimiter is how long failures are waited out: nobody who has mended something should wait for minutes.
func rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, 10*time.Second)
}

// conflictRequeueDelay is how long it takes a cache to hear of who was faster.
const conflictRequeueDelay = 100 * time.Millisecond

// requeueOnConflict makes no fuss when somebody else was faster, or a cache late.
type requeueOnConflict struct{ reconcile.Reconciler }

func (c requeueOnConflict) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := c.Reconciler.Reconcile(ctx, request)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	}
	return result, err
}
