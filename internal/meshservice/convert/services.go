package convert

import (
	"cmp"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// Services are Services and MeshServices, which give ports their names.
type Services struct {
	system                 string
	services, meshServices map[serviceName][]successor.Port
}

type serviceName struct{ namespace, name string }

// NewServices returns none yet. MeshServices of other zones and of universal are in the system namespace.
func NewServices(systemNamespace string) *Services {
	return &Services{system: systemNamespace, services: map[serviceName][]successor.Port{}, meshServices: map[serviceName][]successor.Port{}}
}

// Ports returns the ports of the MeshServices of a name and namespace, in all zones; if there are none, those of the Service
// from which a MeshService is generated.
func (s *Services) Ports(name, namespace string) []successor.Port {
	key := serviceName{namespace, name}
	if ports := s.meshServices[key]; len(ports) > 0 {
		return ports
	}
	return s.services[key]
}

// AddService adds a Service.
func (s *Services) AddService(service *corev1.Service) {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	key := serviceName{service.Namespace, service.Name}
	for _, p := range service.Spec.Ports {
		if p.Protocol == corev1.ProtocolTCP || p.Protocol == "" {
			s.services[key] = append(s.services[key], portOf(p.Port, p.Name))
		}
	}
}

// AddMeshService adds a MeshService under the name and namespace that it has in its own zone.
func (s *Services) AddMeshService(service *kumav1alpha1.MeshService) {
	where := desired.ZoneInfo{Environment: desired.Kubernetes, SystemNamespace: s.system}
	id := desired.IdentityOf(service, where)
	keys := []serviceName{{id.Namespace, id.Name}}
	if service.Namespace == s.system && id.Namespace == s.system && service.Labels[kumav1alpha1.LabelNamespace] == "" {
		// A service of universal has no namespace.
		keys = append(keys, serviceName{"", id.Name})
	}
	for _, key := range keys {
		for _, p := range service.Spec.Ports {
			s.meshServices[key] = append(s.meshServices[key], portOf(p.Port, p.Name))
		}
	}
}

func portOf(number int32, name string) successor.Port {
	return successor.Port{Number: uint32(number), Name: cmp.Or(name, strconv.Itoa(int(number)))}
}

// manifest is a Service or MeshService as written.
type manifest struct {
	header `yaml:",inline"`
	Spec   struct {
		Type  string `yaml:"type"`
		Ports []struct {
			Port     int32  `yaml:"port"`
			Name     string `yaml:"name"`
			Protocol string `yaml:"protocol"`
		} `yaml:"ports"`
	} `yaml:"spec"`
}

// Read adds the Services and MeshServices of a file, and returns how many there are. Those without a namespace are in the
// given one.
func (s *Services) Read(text []byte, namespace string) (count int, err error) {
	for number, document := range documentsIn(text) {
		root, err := document.parse()
		if err != nil {
			return 0, fmt.Errorf("document %d, %w", number+1, err)
		}
		if root == nil {
			continue
		}
		for _, node := range objectsIn(root) {
			var h header
			if node.Decode(&h) != nil || h.serviceKind() == "" {
				continue
			}
			place := fmt.Sprintf("document %d, line %d", number+1, document.line+node.Line)
			var m manifest
			if err := node.Decode(&m); err != nil {
				return 0, fmt.Errorf("%s: %s %s: %w", place, h.serviceKind(), cmp.Or(h.Metadata.Name, h.Name), err)
			}
			if err := s.add(m, namespace); err != nil {
				return 0, fmt.Errorf("%s: %w", place, err)
			}
			count++
		}
	}
	return count, nil
}

// serviceKind is Service or MeshService, and empty for anything else.
func (h header) serviceKind() string {
	switch {
	case h.APIVersion == "v1" && h.Kind == "Service":
		return h.Kind
	case h.ours() && h.Kind == kumav1alpha1.MeshServiceKind, h.universal() && h.Type == kumav1alpha1.MeshServiceKind:
		return kumav1alpha1.MeshServiceKind
	}
	return ""
}

func (s *Services) add(m manifest, namespace string) error {
	kind := m.serviceKind()
	namespace = cmp.Or(m.Metadata.Namespace, namespace)
	if namespace == "" && !m.universal() {
		return fmt.Errorf("%s %s has no namespace: write it, or give -n", kind, m.Metadata.Name)
	}
	if kind == kumav1alpha1.MeshServiceKind {
		service := &kumav1alpha1.MeshService{}
		service.Name, service.Namespace, service.Labels = m.Metadata.Name, namespace, m.Metadata.Labels
		if m.universal() {
			service.Name, service.Namespace, service.Labels = m.Name, s.system, m.Labels
		}
		for _, p := range m.Spec.Ports {
			service.Spec.Ports = append(service.Spec.Ports, kumav1alpha1.Port{Port: p.Port, Name: p.Name})
		}
		s.AddMeshService(service)
		return nil
	}
	service := &corev1.Service{}
	service.Name, service.Namespace, service.Spec.Type = m.Metadata.Name, namespace, corev1.ServiceType(m.Spec.Type)
	for _, p := range m.Spec.Ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Port: p.Port, Name: p.Name, Protocol: corev1.Protocol(p.Protocol)})
	}
	s.AddService(service)
	return nil
}
