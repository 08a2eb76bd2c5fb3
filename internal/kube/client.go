package kube

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewConsistentClient reads from a cache, its own writes included: a plan made from a cache without our last write would write
// again. The manager's client does not, because it would then cache every kind that is written.
func NewConsistentClient(mgr ctrl.Manager, cache client.CacheOptions) (client.Client, error) {
	cache.EnableReadYourWritesConsistency = ptr.To(true)
	c, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), Cache: &cache,
	})
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return c, nil
}

// Logger of a controller: lines name the resource as kubectl does; the start of the controller is logged at debug level.
func Logger(mgr ctrl.Manager, controller, kind string) func(*ctrl.Request) logr.Logger {
	log := mgr.GetLogger()
	return func(request *ctrl.Request) logr.Logger {
		if request == nil {
			return log.V(1).WithValues("controller", controller)
		}
		resource := log.WithValues("resource", strings.ToLower(kind)+"/"+request.Name)
		if request.Namespace == "" {
			return resource
		}
		return resource.WithValues("namespace", request.Namespace)
	}
}
