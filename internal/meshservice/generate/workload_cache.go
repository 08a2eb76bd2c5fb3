package generate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// newWorkloadCache is a cache of no more of pods than Dataplanes are made of, and of the ConfigMaps of the mesh.
func newWorkloadCache(mgr ctrl.Manager, where desired.ZoneInfo) (cache.Cache, error) {
	managed := labels.SelectorFromSet(labels.Set{kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy})
	workloads, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Transform: stripPod},
			&corev1.ConfigMap{}: {
				Label: managed, Namespaces: map[string]cache.Config{where.SystemNamespace: {}},
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("create a cache of pods: %w", err)
	}
	if err := mgr.Add(workloads); err != nil {
		return nil, fmt.Errorf("add the cache of pods: %w", err)
	}
	return workloads, nil
}

// stripPod is what of a pod matters to its Dataplane.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
			OwnerReferences: pod.OwnerReferences, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Annotations: desired.KumaAnnotations(pod.Annotations),
		},
		Spec:   corev1.PodSpec{HostNetwork: pod.Spec.HostNetwork, Containers: portsOnly(pod.Spec.Containers), InitContainers: portsOnly(pod.Spec.InitContainers)},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP},
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			kept.Status.Conditions = []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return kept, nil
}

func portsOnly(containers []corev1.Container) []corev1.Container {
	var all []corev1.Container
	for _, container := range containers {
		if len(container.Ports) > 0 {
			all = append(all, corev1.Container{Ports: container.Ports})
		}
	}
	return all
}

// namespace is the metadata of a namespace. One that is gone has none.
func (r *reconciler) namespace(ctx context.Context, name string) (metav1.Object, error) {
	namespace := metadataOf("v1", "Namespace")
	err := r.workloads.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy)
	return namespace, client.IgnoreNotFound(err)
}

func metadataOf(apiVersion, kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
}
