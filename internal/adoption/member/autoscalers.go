package member

import (
	"context"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/manifest"
)

// IsAutoscaled tells whether an autoscaler of the cluster decides on the replicas of an object. Where the hub may not read
// autoscalers, none does. Before the replicas of the live object change, the API server is asked: the cache may not have received
// an autoscaler that was created together with the object.
func (m *Client) IsAutoscaled(ctx context.Context, object, live *unstructured.Unstructured) (bool, error) {
	if manifest.Replicas(object) < 0 {
		return false, nil
	}
	readable, err := m.autoscalersReadable(ctx)
	if !readable || err != nil {
		return false, err
	}
	found, err := m.hasAutoscaler(ctx, m.cache, object)
	if found || err != nil || live == nil || manifest.Replicas(live) == manifest.Replicas(object) {
		return found, err
	}
	return m.hasAutoscaler(ctx, m.API, object)
}

func (m *Client) hasAutoscaler(ctx context.Context, reader client.Reader, object *unstructured.Unstructured) (bool, error) {
	// The cache waits for its first list.
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var all autoscalingv2.HorizontalPodAutoscalerList
	if err := reader.List(ctx, &all, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the autoscalers of cluster %s: %w", m.Name, err)
	}
	for i := range all.Items {
		if scales(all.Items[i].Spec.ScaleTargetRef, object) {
			return true, nil
		}
	}
	return false, nil
}

func scales(target autoscalingv2.CrossVersionObjectReference, object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return target.Kind == kind.Kind && target.Name == object.GetName() && schema.FromAPIVersionAndKind(target.APIVersion, "").Group == kind.Group
}

// refusalInterval is after how long a list of autoscalers that was forbidden is tried again.
const refusalInterval = time.Minute

// autoscalersReadable tries a list first, because an informer that is forbidden to list never syncs.
func (m *Client) autoscalersReadable(ctx context.Context) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.autoscalersListed || time.Since(m.autoscalersRefused) < refusalInterval {
		return m.autoscalersListed, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscalerList"))
	err := m.API.List(ctx, list, client.Limit(1))
	switch {
	case apierrors.IsForbidden(err) || meta.IsNoMatchError(err):
		m.autoscalersRefused = time.Now()
		return false, nil
	case err != nil:
		return false, fmt.Errorf("list the autoscalers of cluster %s: %w", m.Name, err)
	}
	m.autoscalersListed = true
	return true, nil
}

// keepScaleTarget drops all of an autoscaler but what it scales.
func keepScaleTarget(object any) (any, error) {
	if h, ok := object.(*autoscalingv2.HorizontalPodAutoscaler); ok {
		return &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name, UID: h.UID, ResourceVersion: h.ResourceVersion},
			Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: h.Spec.ScaleTargetRef},
		}, nil
	}
	return object, nil
}
