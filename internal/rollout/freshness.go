package rollout

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// freshnessCheck compares each environment with the API server once per process, before the first write. A cache may lag
// behind what another process, which was the leader before, has written; a plan from a stale copy could switch the Service
// back to a generation that is gone.
type freshnessCheck struct {
	live     client.Reader
	verified sync.Map // UIDs by key
}

// check returns a conflict if the Materialize is not as it was read. After one success only our own writes matter, and the
// client reads those.
func (a *freshnessCheck) check(ctx context.Context, seen *v1alpha2.Materialize) error {
	key := client.ObjectKeyFromObject(seen)
	if uid, known := a.verified.Load(key); known && uid == seen.UID {
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
	a.verified.Store(key, seen.UID)
	return nil
}
