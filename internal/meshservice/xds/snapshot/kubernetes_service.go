package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// kubernetesService is the relevant part of a Kubernetes Service.
type kubernetesService struct {
	name  types.NamespacedName
	ips   []string
	ports []uint32
}

func readKubernetesService(obj *corev1.Service) input {
	s := &kubernetesService{name: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}}
	if obj.Spec.Type == corev1.ServiceTypeExternalName {
		return s
	}
	ips := obj.Spec.ClusterIPs
	if len(ips) == 0 {
		ips = []string{obj.Spec.ClusterIP}
	}
	for _, ip := range ips {
		if isIP(ip) {
			s.ips = append(s.ips, ip)
		}
	}
	for _, port := range obj.Spec.Ports {
		if port.Protocol == "" || port.Protocol == corev1.ProtocolTCP {
			s.ports = append(s.ports, uint32(port.Port))
		}
	}
	return s
}

func (s *kubernetesService) set(w *zoneState, present bool) {
	setKey(&w.services, s.name, s, present)
	for _, ip := range s.ips {
		setItem(&w.owners, ip, s.name, present)
	}
	// The destinations with its addresses.
	for _, m := range w.meshes {
		for _, port := range s.ports {
			m.dirty.keys.Insert(model.TagKey(model.KubernetesTag(s.name.Name, s.name.Namespace, port)))
		}
		m.markDependents("Service", s.name.String())
		for _, ip := range s.ips {
			m.markDependents("VIP", ip)
		}
	}
}
