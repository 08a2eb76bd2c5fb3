package objects

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

func service(name string, labels, selector map[string]string, ports ...port) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: selector},
	}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name: p.name, Port: p.number, TargetPort: intstr.FromInt32(p.number), Protocol: corev1.ProtocolTCP,
		})
	}
	return s
}

// GenerationService selects one generation, leader or not, so that the operator can reach its environmentd.
func GenerationService(m *v1alpha2.Materialize, g int64) *corev1.Service {
	n := NamesOf(m)
	s := service(n.Generation(g), n.GenerationLabels(g), n.GenerationLabels(g), environmentdPorts...)
	s.Spec.PublishNotReadyAddresses = true
	return s
}

// PubSubService is where the processes of one generation find each other.
func PubSubService(m *v1alpha2.Materialize, g int64) *corev1.Service {
	n := NamesOf(m)
	s := service(n.PubSub(g), n.GenerationLabels(g), n.GenerationLabels(g), pubsubPort)
	s.Spec.ClusterIP, s.Spec.PublishNotReadyAddresses = corev1.ClusterIPNone, true
	return s
}

// PublicService selects the pods of the active generation.
func PublicService(m *v1alpha2.Materialize, selector map[string]string) *corev1.Service {
	n := NamesOf(m)
	return service(n.Environmentd(), n.Labels(AppEnvironmentd), selector, environmentdPorts...)
}
