package desired

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// protocols are the supported values; any other is tcp.
var protocols = map[string]string{
	"tcp": "tcp", "http": "http", "http2": "http2", "grpc": "grpc", "kafka": "kafka",
	"kubernetes.io/h2c": "http2", "h2c": "http2", "kubernetes.io/ws": "http",
}

// protocolOf returns the protocol of a port of a Service: its appProtocol, Kuma's annotation, or the prefix of its name.
func protocolOf(service *corev1.Service, port corev1.ServicePort) string {
	if port.AppProtocol != nil {
		return cmp.Or(protocols[strings.ToLower(*port.AppProtocol)], "tcp")
	}
	if value := service.Annotations[fmt.Sprintf("%d.service.kuma.io/protocol", port.Port)]; value != "" {
		return cmp.Or(protocols[strings.ToLower(value)], "tcp")
	}
	prefix, _, _ := strings.Cut(port.Name, "-")
	return cmp.Or(protocols[prefix], "tcp")
}

func tcpPorts(service *corev1.Service) []corev1.ServicePort {
	var all []corev1.ServicePort
	for _, port := range service.Spec.Ports {
		if port.Protocol == corev1.ProtocolTCP || port.Protocol == "" {
			all = append(all, port)
		}
	}
	return all
}

// targetOf returns the target port.
func targetOf(port corev1.ServicePort) intstr.IntOrString {
	if port.TargetPort == (intstr.IntOrString{}) {
		return intstr.FromInt32(port.Port)
	}
	return port.TargetPort
}

// portsOf returns the ports of a Service as those of a MeshService. A port without a name is named by its number.
func portsOf(service *corev1.Service) []kumav1alpha1.Port {
	var all []kumav1alpha1.Port
	for _, port := range tcpPorts(service) {
		all = append(all, kumav1alpha1.Port{
			Port: port.Port, Name: cmp.Or(port.Name, strconv.Itoa(int(port.Port))), TargetPort: targetOf(port),
			AppProtocol: protocolOf(service, port),
		})
	}
	return all
}

// containerPort returns the number and name of a container port.
func containerPort(pod *corev1.Pod, target intstr.IntOrString) (number int32, name string, found bool) {
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, container := range containers {
			for _, port := range container.Ports {
				if port.Protocol != corev1.ProtocolTCP && port.Protocol != "" {
					continue
				}
				if port.Name != "" && port.Name == target.StrVal || target.Type == intstr.Int && port.ContainerPort == target.IntVal {
					return port.ContainerPort, port.Name, true
				}
			}
		}
	}
	return target.IntVal, "", target.Type == intstr.Int && target.IntVal > 0
}
