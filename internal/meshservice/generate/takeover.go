package generate

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// takeoverInterval is how often the cache is asked whether it has what was taken over.
const takeoverInterval = 100 * time.Millisecond

// takeover keeps the controllers waiting until the cache has what was taken over from another control plane. Before, it would pass
// for what a user has written, and some of it would be generated a second time.
type takeover struct {
	mu   sync.Mutex
	done bool
}

// await returns when all is taken over, and the cache has it.
func (t *takeover) await(ctx context.Context, takenOver <-chan struct{}, cached func(context.Context) (bool, error)) error {
	if takenOver == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-takenOver:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.done {
		var err error
		if t.done, err = cached(ctx); err != nil {
			return err
		}
		if t.done {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(takeoverInterval):
		}
	}
	return nil
}

// hasTakenOver tells whether the cache has the label of Fairlead on all objects that have it.
func (r *reconciler) hasTakenOver(ctx context.Context) (bool, error) {
	for kind, cached := range map[string]client.Object{kumav1alpha1.MeshServiceKind: &kumav1alpha1.MeshService{}, kumav1alpha1.DataplaneKind: &kumav1alpha1.Dataplane{}} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kumav1alpha1.GroupVersion.WithKind(kind + "List"))
		if err := r.live.List(ctx, list, client.MatchingLabels{kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy}); err != nil {
			return false, fmt.Errorf("list what is taken over: %w", err)
		}
		for i := range list.Items {
			err := r.cache.Get(ctx, client.ObjectKeyFromObject(&list.Items[i]), cached)
			if apierrors.IsNotFound(err) || err == nil && !desired.IsManaged(cached) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
		}
	}
	return true, nil
}
