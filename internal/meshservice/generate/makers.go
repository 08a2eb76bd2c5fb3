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

// manyMakers is how many are remembered before all are forgotten.
const manyMakers = 4096

// makers remembers who makes the ReplicaSets and Jobs that make pods: it never changes, and is read once for all their pods.
type makers struct {
	live  client.Reader
	mu    sync.Mutex
	known map[types.UID]*metav1.OwnerReference
}

func newMakers(live client.Reader) *makers {
	return &makers{live: live, known: map[types.UID]*metav1.OwnerReference{}}
}

// consumerOf is the workload that a pod is part of.
func (m *makers) consumerOf(ctx context.Context, pod metav1.Object) (string, error) {
	owner := metav1.GetControllerOf(pod)
	if !desired.Between(owner) {
		return desired.ConsumerOf(pod, nil), nil
	}
	m.mu.Lock()
	maker, found := m.known[owner.UID]
	m.mu.Unlock()
	if found {
		return desired.ConsumerOf(pod, maker), nil
	}
	between := metadataOf(owner.APIVersion, owner.Kind)
	err := client.IgnoreNotFound(m.live.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: owner.Name}, between))
	if err != nil {
		return "", fmt.Errorf("look up %s %s/%s, which made pod %s: %w", owner.Kind, pod.GetNamespace(), owner.Name, pod.GetName(), err)
	}
	maker = metav1.GetControllerOf(between)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) >= manyMakers {
		clear(m.known)
	}
	m.known[owner.UID] = maker
	return desired.ConsumerOf(pod, maker), nil
}
