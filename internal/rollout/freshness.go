package rollout

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// acquaintance is which environments this process has seen as they really are. Those that it has not, another process may
// just have brought further than the cache has heard: what is done on such hearsay could lead users back to what is gone.
type freshnessCheck struct {
	live client.Reader

	mu       sync.Mutex
	verified map[types.NamespacedName]types.UID
}

// check is a conflict if a resource is not as it was read. Once it was, our own writes are all that matters, and those are
// read first.
func (a *freshnessCheck) check(ctx context.Context, seen *v1alpha2.Materialize) error {
	key := client.ObjectKeyFromObject(seen)
	a.mu.Lock()
	known := a.verified[key] == seen.UID
	a.mu.Unlock()
	if known {
		return nil
	}
	var now v1alpha2.Materialize
	if err := a.live.Get(ctx, key, &now); client.IgnoreNotFound(err) != nil {
		return err
	}
	if now.UID != seen.UID || now.ResourceVersion != seen.ResourceVersion {
		return apierrors.NewConflict(v1alpha2.GroupVersion.WithResource("materializes").GroupResource(), seen.Name,
			errors.New("the cached copy is stale"))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.verified == nil {
		a.verified = map[types.NamespacedName]types.UID{}
	}
	a.verified[key] = seen.UID
	return nil
}

func (a *freshnessCheck) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.verified, key)
}
