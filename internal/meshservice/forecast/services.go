package forecast

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// meshServicesIn returns the MeshServices in a mode: unmanaged ones, which stay, and generated ones.
func (w *MeshState) meshServicesIn(mode model.Mode) []*kumav1alpha1.MeshService {
	var all, fresh []*kumav1alpha1.MeshService
	others, generated := map[types.NamespacedName]bool{}, map[types.NamespacedName]*kumav1alpha1.MeshService{}
	for _, s := range w.meshServices {
		key := keyOf(s)
		if desired.IsGenerated(s, w.Where) {
			generated[key] = s
			continue
		}
		others[key] = true
		all = append(all, s)
	}
	if mode == model.Disabled {
		return all
	}
	for _, s := range w.desiredServices() {
		key := keyOf(s)
		if others[key] {
			continue
		}
		if there := generated[key]; there != nil {
			s.Status, s.CreationTimestamp = there.Status, there.CreationTimestamp
		} else {
			fresh = append(fresh, s)
		}
		all = append(all, s)
	}
	w.allocateAddresses(fresh)
	return all
}

// desiredServices returns the MeshServices to generate.
func (w *MeshState) desiredServices() []*kumav1alpha1.MeshService {
	if w.Where.IsUniversal() {
		return w.desiredUniversalServices()
	}
	var all []*kumav1alpha1.MeshService
	for _, service := range w.services {
		namespace := w.namespaces[service.Namespace]
		if namespace != nil && desired.MeshOfWorkload(service, namespace) == w.Mesh.Name {
			all = append(all, desired.MeshServicesOf(service, namespace, w.podsSelectedBy(service), w.Where)...)
		}
	}
	return all
}

func (w *MeshState) podsSelectedBy(service *corev1.Service) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range w.pods {
		if desired.Selects(service, pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (w *MeshState) desiredUniversalServices() []*kumav1alpha1.MeshService {
	serving := map[string][]*kumav1alpha1.Dataplane{}
	for _, d := range w.dataplanes {
		for _, service := range desired.ServicesOf(d, w.Where) {
			serving[service] = append(serving[service], d)
		}
	}
	there := func(name string) *kumav1alpha1.MeshService {
		return w.allMeshServices[types.NamespacedName{Namespace: w.Where.SystemNamespace, Name: name}]
	}
	var all []*kumav1alpha1.MeshService
	for _, service := range slices.Sorted(maps.Keys(serving)) {
		if !desired.IsMeshServiceName(service) {
			continue
		}
		ports, _ := desired.UniversalPorts(service, serving[service])
		if name, free := desired.UniversalName(service, w.Mesh.Name, there, w.Where); free && len(ports) > 0 {
			all = append(all, desired.UniversalService(name, service, w.Mesh.Name, ports, w.Where))
		}
	}
	return all
}
