// Package revision is the passage that keeps control planes side by side: an Istio stands for one or more
// IstioRevisions, of which one is active, and an IstioRevisionTag is a stable name for one.
package revision

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/revision/controlplane"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
	"github.com/fairlead/fairlead/internal/revision/istio"
	"github.com/fairlead/fairlead/internal/revision/tag"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=istios.sailoperator.io;istiorevisions.sailoperator.io;istiorevisiontags.sailoperator.io,verbs=get;create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,resourceNames=istiorevisiontags.sailoperator.io,verbs=patch

// Name of the passage.
const Name = v1.PassageRevision

// Caches are the kinds that the passage reads from the manager's cache.
func Caches() []client.Object {
	return []client.Object{&v1.Istio{}, &v1.IstioRevision{}, &v1.IstioRevisionTag{}}
}

// Setup adds the passage to the manager.
func Setup(mgr ctrl.Manager, source charts.Source) error {
	consistent, err := kube.NewConsistentClient(mgr, client.CacheOptions{Reader: mgr.GetCache()})
	if err != nil {
		return err
	}
	watchErrors := usage.NewWatchErrors()
	installed, err := newInstalledCache(mgr, watchErrors)
	if err != nil {
		return err
	}
	ctx := context.Background()
	workloads, err := newWorkloadCache(mgr, watchErrors)
	if err != nil {
		return err
	}
	tracker, err := usage.NewTracker(ctx, installed.GetCache(), workloads, mgr.GetCache())
	if err != nil {
		return err
	}
	tracker.SetWatchErrors(watchErrors)
	objects, err := installer.NewObjects(ctx, installed.GetCache(), mgr.GetCache(), mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	releases, err := release.New(mgr.GetConfig(), mgr.GetRESTMapper(), mgr.GetLogger())
	if err != nil {
		return err
	}
	tools := installer.Tools{
		Client:   consistent,
		Cache:    mgr.GetCache(),
		Objects:  objects,
		Releases: installer.NewReleaseClient(objects, releases),
		Charts:   installer.NewCharts(source),
		Usage:    tracker,
		Recorder: mgr.GetEventRecorder("fairlead.dev/" + v1.PassageRevision),
		Now:      time.Now,
	}
	if err := istio.Setup(mgr, tools); err != nil {
		return fmt.Errorf("watch Istios: %w", err)
	}
	if err := controlplane.Setup(mgr, tools); err != nil {
		return fmt.Errorf("watch IstioRevisions: %w", err)
	}
	if err := tag.Setup(mgr, tools); err != nil {
		return fmt.Errorf("watch IstioRevisionTags: %w", err)
	}
	if err := workload.Setup(mgr, consistent, workloads, installed.GetCache()); err != nil {
		return fmt.Errorf("watch workloads: %w", err)
	}
	return nil
}

// newWorkloadCache caches all workloads, whose pod templates may use revisions. The cache of installed objects has Deployments
// as well, but only those that are installed.
func newWorkloadCache(mgr ctrl.Manager, watchErrors *usage.WatchErrors) (cache.Cache, error) {
	workloads, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: inventory.CacheOptions(), ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler: watchErrors.HandleWatchError,
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of workloads: %w", err)
	}
	return workloads, mgr.Add(standbyCache{workloads})
}

// standbyCache also runs in an operator that stands by, in which controllers wait for their sources to sync. A cache with options by object
// would start when the operator leads.
type standbyCache struct{ cache.Cache }

func (standbyCache) NeedLeaderElection() bool { return false }

// newInstalledCache caches installed objects, by label, and the metadata of namespaces and pods that may use them.
func newInstalledCache(mgr ctrl.Manager, watchErrors *usage.WatchErrors) (cluster.Cluster, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.WarningHandler, config.WarningHandlerWithContext = nil, release.WarningLogger{}
	installed, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = mgr.GetScheme()
		o.HTTPClient = mgr.GetHTTPClient()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mgr.GetRESTMapper(), nil }
		o.Cache = cache.Options{
			DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{v1.LabelPassage: v1.PassageRevision}),
			ByObject:                    usage.CacheOptions(),
			ReaderFailOnMissingInformer: true,
			DefaultWatchErrorHandler:    watchErrors.HandleWatchError,
		}
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of installed objects: %w", err)
	}
	return installed, mgr.Add(installed)
}
