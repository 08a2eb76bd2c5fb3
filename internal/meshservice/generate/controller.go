// Package generate keeps the resources of a mesh: MeshServices for Services and Dataplanes, Dataplanes for pods, VIPs and
// hostnames. Package desired plans them; here they are observed, applied and reported.
package generate

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// FieldOwner is the field manager of the passage.
const FieldOwner = "fairlead/meshservice"

// Connections is the xDS state of proxies.
type Connections interface {
	Connection(model.ProxyID) model.Connection
	OnChange(func(model.ProxyID))
}

// Options of the controllers.
type Options struct {
	desired.ZoneInfo
	// Connections, if not nil, are counted in the status of MeshServices.
	Connections Connections
	// Grace is how long an unserved MeshService or VIP is kept.
	Grace time.Duration
	// MeshGrace is how long what is generated is kept after the Mesh is deleted.
	MeshGrace time.Duration
	// Ranges are the CIDRs of VIPs; an empty one is the default.
	Ranges desired.Ranges
	// NamespaceVIPs is how many VIPs of each range one namespace may have; 0 is the default of desired.ShareOf.
	NamespaceVIPs int
	// TakenOver is closed once Fairlead has taken over what another control plane has generated; nil if there is nothing to wait for.
	TakenOver <-chan struct{}
}

// reconciler is shared by the controllers.
type reconciler struct {
	Options
	// client reads from the manager's cache, including its own writes.
	client client.Client
	// cache does not wait for own writes, for use in event handlers.
	cache client.Reader
	// live reads from the API server, and records writes ConfigMaps, of which only those of VIPs are cached.
	live     client.Reader
	records  client.Writer
	recorder events.EventRecorder
	now      func() time.Time
	events   *kube.EventDedup[eventSubject]
	takeover takeover
	// refused are the services that could not take a VIP.
	refused kube.Enqueuer
	// deleted are the Meshes that were deleted a moment ago.
	deleted *deletedMeshes
	// stalls is used by the controller of Meshes only.
	stalls stallDetector
	// owners are the owners of ReplicaSets and Jobs by UID, which never change.
	owners *lru.Cache
}

// +kubebuilder:rbac:groups=kuma.io,resources=meshes;zoneingresses;meshmultizoneservices;hostnamegenerators;meshtimeouts;meshretries;meshcircuitbreakers;meshloadbalancingstrategies;meshhttproutes;meshtcproutes,verbs=list;watch
// +kubebuilder:rbac:groups=kuma.io,resources=dataplanes;meshservices,verbs=list;watch;create;update;delete
// +kubebuilder:rbac:groups=kuma.io,resources=meshes/status;meshservices/status;meshmultizoneservices/status;meshtimeouts/status;meshretries/status;meshcircuitbreakers/status;meshloadbalancingstrategies/status;meshhttproutes/status;meshtcproutes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;pods;namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controllers to a manager with CacheOptions.
func Setup(mgr ctrl.Manager, options Options) error {
	options.Ranges = options.Ranges.OrDefaults()
	ctx := context.Background()
	r := &reconciler{
		Options: options, cache: mgr.GetCache(), live: mgr.GetAPIReader(), records: mgr.GetClient(), now: time.Now,
		events: &kube.EventDedup[eventSubject]{}, stalls: stallDetector{}, deleted: newDeletedMeshes(), refused: kube.NewEnqueuer(), owners: lru.New(maxOwners),
		recorder: mgr.GetEventRecorder("fairlead.dev/meshservice"),
	}
	var err error
	r.client, err = kube.NewConsistentClient(mgr, client.CacheOptions{Reader: mgr.GetCache()})
	if err != nil {
		return err
	}
	// What is read of the switched consumers needs no reconcile.
	if _, err := mgr.GetCache().GetInformer(ctx, &fairleadv1alpha1.MeshConsumerSlice{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("watch MeshConsumerSlices: %w", err)
	}
	if err := r.setupIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	setups := []func(ctrl.Manager) error{r.setupServices, r.setupPods}
	if options.IsUniversal() {
		setups = []func(ctrl.Manager) error{r.setupUniversal}
	}
	setups = append(setups, r.setupVIPs, r.setupStatuses, r.setupMeshes, r.setupPolicies, r.setupGenerators)
	for _, setup := range setups {
		if err := setup(mgr); err != nil {
			return err
		}
	}
	return nil
}

// maxConcurrent is the number of workers of the larger controllers.
const maxConcurrent = 4

// newController begins a controller of the passage.
func newController(mgr ctrl.Manager, name string, workers int) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).Named("meshservice-" + name).WithOptions(controller.Options{
		MaxConcurrentReconciles: workers, RateLimiter: kube.RateLimiter[reconcile.Request](),
	})
}

// complete completes a controller, which requeues on conflict and while a Mesh may be created again, and waits for a takeover.
func (r *reconciler) complete(b *builder.Builder, watched string, f reconcile.Func) error {
	wait := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if err := r.takeover.await(ctx, r.TakenOver, r.hasTakenOver); err != nil {
			return reconcile.Result{}, err
		}
		return requeueWhileDeleted(f(ctx, request))
	})
	if err := b.Complete(kube.Traced("meshservice "+watched, kube.RequeueOnConflict[reconcile.Request]{TypedReconciler: wait})); err != nil {
		return fmt.Errorf("watch %s: %w", watched, err)
	}
	return nil
}
