package generate

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// maxOwners bounds the cache.
const maxOwners = 4096

// ownerCache caches the owners of ReplicaSets and Jobs, which never change.
type ownerCache struct {
	live   client.Reader
	mu     sync.Mutex
	owners map[types.UID]*metav1.OwnerReference
}

func newOwnerCache(live client.Reader) *ownerCache {
	return &ownerCache{live: live, owners: map[types.UID]*metav1.OwnerReference{}}
}

// consumerOf returns the workload of a pod.
func (m *ownerCache) consumerOf(ctx context.Context, pod metav1.Object) (string, error) {
	owner := metav1.GetControllerOf(pod)
	if !desired.IsIntermediateOwner(owner) {
		return desired.ConsumerOf(pod, nil), nil
	}
	m.mu.Lock()
	ownersOwner, found := m.owners[owner.UID]
	m.mu.Unlock()
	if found {
		return desired.ConsumerOf(pod, ownersOwner), nil
	}
	between := metadataOf(owner.APIVersion, owner.Kind)
	err := client.IgnoreNotFound(m.live.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: owner.Name}, between))
	if err != nil {
		return "", fmt.Errorf("get %s %s/%s, the owner of pod %s: %w", owner.Kind, pod.GetNamespace(), owner.Name, pod.GetName(), err)
	}
	ownersOwner = metav1.GetControllerOf(between)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.owners) >= maxOwners {
		clear(m.owners)
	}
	m.owners[owner.UID] = ownersOwner
	return desired.ConsumerOf(pod, ownersOwner), nil
}
