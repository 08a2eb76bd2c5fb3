// Package revision is the passage that keeps control planes side by side: an Istio stands for one or more
// IstioRevisions, of which one is active.
package revision

import (
	"fmt"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/istio"
)

// Name of the passage.
const Name = v1.PassageRevision

// Caches are the kinds that the passage reads from the cache.
func Caches() []client.Object {
	return []client.Object{&v1.Istio{}, &v1.IstioRevision{}}
}

// Setup adds the passage to the manager.
func Setup(mgr ctrl.Manager) error {
	// A plan made from a cache that has not seen our own last write would write it again. The manager's client is not
	// like this because it would then cache every kind that anybody writes.
	consistent, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{
			Reader:                          mgr.GetCache(),
			EnableReadYourWritesConsistency: ptr.To(true),
		},
	})
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	return istio.Setup(mgr, consistent)
}
