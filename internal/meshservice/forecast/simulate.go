package forecast

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// simulateSwitched adds the consumers of a scenario to the switched ones.
func (w *MeshState) simulateSwitched(switched map[string]bool, proxies []model.Proxy, q Scenario) ([]string, error) {
	known := map[string]bool{}
	for _, p := range proxies {
		known[p.Consumer] = true
	}
	wanted := q.Consumers
	if q.AllConsumers {
		wanted = slices.Sorted(maps.Keys(known))
	}
	var added []string
	for _, name := range wanted {
		if !known[name] {
			return nil, UnknownConsumerError{Mesh: w.Mesh.Name, Consumer: name, Known: slices.Sorted(maps.Keys(known))}
		}
		if !switched[name] {
			switched[name] = true
			added = append(added, name)
		}
	}
	return added, nil
}

// withMode returns the Mesh with a mode in force.
func (w *MeshState) withMode(mode model.Mode) *kumav1alpha1.Mesh {
	mesh := w.Mesh.DeepCopy()
	mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: kumav1alpha1.Mode(mode)}
	mesh.Status.Mode, mesh.Status.ObservedGeneration = mesh.Mode(), mesh.Generation
	return mesh
}

// engine returns the engine of the operator with the state of the mesh.
func (w *MeshState) engine(mesh *kumav1alpha1.Mesh, services []*kumav1alpha1.MeshService, switched map[string]bool) *snapshot.Engine {
	e := snapshot.New(w.Where)
	for _, namespace := range w.namespaces {
		e.PutNamespace(namespace)
	}
	e.Put(mesh)
	e.SetVIPs(mesh.Name, w.tags)
	e.SetSwitched(mesh.Name, switched)
	putAll(e, w.services)
	putAll(e, w.dataplanes)
	putAll(e, services)
	putAll(e, w.multiZone)
	putAll(e, w.policies)
	e.Flush()
	return e
}

func putAll[T model.Object](e *snapshot.Engine, objects []T) {
	for _, o := range objects {
		e.Put(o)
	}
}

// rulesOf returns what objects of a namespace may name.
func (w *MeshState) rulesOf(namespace string) desired.NamespaceRules {
	if there := w.namespaces[namespace]; there != nil {
		return desired.RulesOf(there)
	}
	return desired.NamespaceRules{}
}

// namesOnlyIn returns the names of MeshServices that others lack.
func namesOnlyIn(services, others []*kumav1alpha1.MeshService) []string {
	names := map[string]bool{}
	for _, s := range services {
		names[s.Namespace+"/"+s.Name] = true
	}
	for _, s := range others {
		delete(names, s.Namespace+"/"+s.Name)
	}
	return append([]string{}, slices.Sorted(maps.Keys(names))...)
}

// meshServicesIn returns the MeshServices in a mode: unmanaged ones, which stay, and generated ones.
func (w *MeshState) meshServicesIn(mode model.Mode) []*kumav1alpha1.MeshService {
	var all, fresh []*kumav1alpha1.MeshService
	generated := map[client.ObjectKey]*kumav1alpha1.MeshService{}
	for _, s := range w.meshServices {
		if desired.IsGenerated(s, w.Where) {
			generated[client.ObjectKeyFromObject(s)] = s
			continue
		}
		all = append(all, s)
	}
	if mode == model.Disabled {
		return w.addTakenOver(all, generated)
	}
	for _, s := range w.desiredServices() {
		key := client.ObjectKeyFromObject(s)
		if w.isBlocked(key) {
			continue
		}
		if there := generated[key]; there != nil {
			s.Status, s.CreationTimestamp = there.Status, there.CreationTimestamp
			delete(generated, key)
		} else {
			fresh = append(fresh, s)
		}
		all = append(all, s)
	}
	w.allocateAddresses(fresh)
	return w.addTakenOver(all, generated)
}

// addTakenOver adds the MeshServices that Fairlead has only taken over from another control plane. They stay as long as their
// Services do.
func (w *MeshState) addTakenOver(all []*kumav1alpha1.MeshService, generated map[client.ObjectKey]*kumav1alpha1.MeshService) []*kumav1alpha1.MeshService {
	for _, s := range w.meshServices {
		owner := metav1.GetControllerOf(s)
		if generated[client.ObjectKeyFromObject(s)] != nil && !desired.IsApplied(s) && owner != nil && find(w.services, s.Namespace, owner.Name) != nil {
			all = append(all, s)
		}
	}
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
			all = append(all, desired.MeshServicesOf(service, namespace, w.podsSelectedBy(service), w.meshServices, w.Where)...)
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
		for _, service := range desired.ServicesOf(d, w.rulesOf(d.Namespace), w.Where) {
			serving[service] = append(serving[service], d)
		}
	}
	there := func(name string) *kumav1alpha1.MeshService {
		return w.allMeshServices[client.ObjectKey{Namespace: w.Where.SystemNamespace, Name: name}]
	}
	var all []*kumav1alpha1.MeshService
	for _, service := range slices.Sorted(maps.Keys(serving)) {
		if !desired.IsMeshServiceName(service) {
			continue
		}
		ports, _ := desired.UniversalPorts(service, serving[service])
		if name, _ := desired.UniversalName(service, w.Mesh.Name, there, w.Where); name != "" && len(ports) > 0 {
			all = append(all, desired.UniversalService(name, service, w.Mesh.Name, ports, w.Where))
		}
	}
	return all
}

// isBlocked says whether a MeshService of the name exists that Fairlead does not manage, in any mesh.
func (w *MeshState) isBlocked(key client.ObjectKey) bool {
	there := w.allMeshServices[key]
	return there != nil && !desired.IsGenerated(there, w.Where)
}

// blockedServices are the MeshServices that exist unmanaged, and would be generated otherwise.
func (w *MeshState) blockedServices() []string {
	var all []string
	for _, s := range w.desiredServices() {
		if w.isBlocked(client.ObjectKeyFromObject(s)) {
			all = append(all, s.Namespace+"/"+s.Name)
		}
	}
	slices.Sort(all)
	return all
}

// allocateAddresses allocates the VIPs and hostnames of new MeshServices. Existing ones keep theirs, since they are older.
func (w *MeshState) allocateAddresses(services []*kumav1alpha1.MeshService) {
	vips, hostnames := map[string]bool{}, map[string]bool{}
	take := func(its []kumav1alpha1.VIP, names []kumav1alpha1.Address, ours bool) {
		for _, vip := range its {
			vips[vip.IP] = true
		}
		for _, a := range names {
			hostnames[a.Hostname] = hostnames[a.Hostname] || ours
		}
	}
	for _, s := range w.allMeshServices {
		take(s.Status.VIPs, s.Status.Addresses, desired.MeshOf(s) == w.Mesh.Name)
	}
	for _, o := range w.multiZone {
		if s, ok := o.(*kumav1alpha1.MeshMultiZoneService); ok {
			take(s.Status.VIPs, s.Status.Addresses, true)
		}
	}
	for _, s := range services {
		for _, ip := range w.vipsOf(s, vips) {
			s.Status.VIPs = append(s.Status.VIPs, kumav1alpha1.VIP{IP: ip})
		}
		s.Status.Addresses, _, _ = desired.Addresses(s, s.Status.Addresses, w.generators, w.rulesOf(s.Namespace), w.Where, func(hostname string) string {
			if hostnames[hostname] {
				return "an older service"
			}
			return ""
		})
		take(s.Status.VIPs, s.Status.Addresses, true)
	}
}

// vipsOf returns the addresses of Kubernetes, or a free VIP.
func (w *MeshState) vipsOf(s *kumav1alpha1.MeshService, taken map[string]bool) []string {
	if name := desired.BackingService(s, w.Where); name != "" {
		behind := find(w.services, s.Namespace, name)
		var named *corev1.Pod
		if ref := s.Spec.Selector.DataplaneRef; ref != nil {
			named = w.pods[client.ObjectKey{Namespace: s.Namespace, Name: ref.Name}]
		}
		if addresses, own := desired.KubernetesAddresses(s, behind, named, w.Where); own {
			return addresses
		}
	}
	ip, found := desired.PickAddress(w.ranges.Services, desired.VIPKey(s), func(a netip.Addr) bool { return taken[a.String()] })
	if !found {
		return nil
	}
	return []string{ip.String()}
}

// find returns the object of that name, or nil.
func find[T metav1.Object](among []T, namespace, name string) T {
	i := slices.IndexFunc(among, func(o T) bool { return o.GetNamespace() == namespace && o.GetName() == name })
	if i < 0 {
		var none T
		return none
	}
	return among[i]
}
