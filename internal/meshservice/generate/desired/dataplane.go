package desired

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// The ports to which a pod's traffic is redirected.
const (
	redirectInbound  = 15006
	redirectOutbound = 15001
)

// unusedPort is the port of an inbound without a Service: policies select the proxy by its tags.
const unusedPort = 49151

// HasProxy says whether a pod is part of the mesh and has an address.
func HasProxy(pod *corev1.Pod, namespace metav1.Object) bool {
	injection := labelOrAnnotation(pod, kumav1alpha1.LabelSidecarInjection)
	switch {
	case IsIgnored(pod), IsIgnored(namespace), isOff(injection), !IsInjected(namespace) && !isOn(injection):
		return false
	}
	return hasOwnAddress(pod)
}

// hasOwnAddress says whether a pod has an address that no other pod has: that of a finished pod is reused.
func hasOwnAddress(pod *corev1.Pod) bool {
	return !pod.Spec.HostNetwork && pod.Status.PodIP != "" &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// Selects says whether a Service selects a pod.
func Selects(service *corev1.Service, pod *corev1.Pod) bool {
	return service.Namespace == pod.Namespace && len(service.Spec.Selector) > 0 &&
		labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
}

// DataplaneOf returns the Dataplane of a pod with these Services, nil if it has none or names a mesh that it may not join. The consumer is its workload as
// Kind/name. An error reports malformed annotations: the reach of the existing Dataplane is kept.
func DataplaneOf(pod *corev1.Pod, namespace metav1.Object, services []*corev1.Service, consumer string, there *kumav1alpha1.Dataplane,
	where ZoneInfo,
) (*kumav1alpha1.Dataplane, error) {
	if !HasProxy(pod, namespace) || RefusedMesh(pod, namespace, where) != "" {
		return nil, nil
	}
	mesh := MeshOfWorkload(pod, namespace)
	all := inheritedLabels(pod.Labels)
	maps.Copy(all, identityLabels(pod.Name, pod.Namespace, mesh, where))
	proxying, err := proxyingOf(pod, there)
	return &kumav1alpha1.Dataplane{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, Labels: all,
			Annotations:     map[string]string{kumav1alpha1.AnnotationConsumer: consumer},
			OwnerReferences: []metav1.OwnerReference{ownedBy(pod, kindPod)},
		},
		Spec: kumav1alpha1.DataplaneSpec{Networking: kumav1alpha1.Networking{
			Address: pod.Status.PodIP, Inbound: inboundsOf(pod, namespace, services, consumer, where), TransparentProxying: proxying,
		}},
	}, err
}

// inboundsOf returns an inbound for each port of the Services that select the pod.
func inboundsOf(pod *corev1.Pod, namespace metav1.Object, services []*corev1.Service, consumer string, where ZoneInfo) []kumav1alpha1.Inbound {
	services = slices.SortedFunc(slices.Values(services), func(a, b *corev1.Service) int { return cmp.Compare(a.Name, b.Name) })
	mesh, state := MeshOfWorkload(pod, namespace), stateOf(pod)
	var all []kumav1alpha1.Inbound
	for _, service := range services {
		if !HasEligiblePorts(service) || !Selects(service, pod) || MeshOfWorkload(service, namespace) != mesh {
			continue
		}
		for _, port := range tcpPorts(service) {
			number, name, found := containerPort(pod, targetOf(port))
			if !found {
				continue
			}
			tags := tagsOf(pod, where)
			tags[kumav1alpha1.TagService] = model.KubernetesTag(service.Name, service.Namespace, uint32(port.Port))
			tags[kumav1alpha1.TagProtocol] = protocolOf(service, port)
			tags[TagServiceName], tags[TagServicePort] = service.Name, strconv.Itoa(int(port.Port))
			all = append(all, kumav1alpha1.Inbound{
				Port: number, Name: name, Protocol: tags[kumav1alpha1.TagProtocol], Tags: tags, State: state,
			})
		}
	}
	if len(all) > 0 {
		return all
	}
	tags := tagsOf(pod, where)
	tags[kumav1alpha1.TagService] = nameOf(consumer) + "_" + pod.Namespace + "_svc"
	return []kumav1alpha1.Inbound{{Port: unusedPort, Tags: tags, State: kumav1alpha1.InboundIgnored}}
}

func tagsOf(pod *corev1.Pod, where ZoneInfo) map[string]string {
	tags := inheritedLabels(pod.Labels)
	// Empty tags are invalid.
	maps.DeleteFunc(tags, func(_, value string) bool { return value == "" })
	tags[kumav1alpha1.TagZone], tags[kumav1alpha1.LabelKubernetesNamespace] = where.Zone, pod.Namespace
	return tags
}

func stateOf(pod *corev1.Pod) kumav1alpha1.InboundState {
	if pod.DeletionTimestamp != nil {
		return kumav1alpha1.InboundNotReady
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return kumav1alpha1.InboundReady
		}
	}
	return kumav1alpha1.InboundNotReady
}

// proxyingOf returns the reach of a pod.
func proxyingOf(pod *corev1.Pod, there *kumav1alpha1.Dataplane) (*kumav1alpha1.TransparentProxying, error) {
	proxying := &kumav1alpha1.TransparentProxying{RedirectPortInbound: redirectInbound, RedirectPortOutbound: redirectOutbound}
	if text, set := pod.Annotations[kumav1alpha1.AnnotationReachableServices]; set {
		proxying.ReachableServices = ReachableServices(text)
	}
	text, set := pod.Annotations[kumav1alpha1.AnnotationReachableBackends]
	if !set {
		return proxying, nil
	}
	refs, err := ReachableBackends(text)
	if err == nil {
		proxying.ReachableBackendRefs = &kumav1alpha1.BackendRefs{Items: refs}
		return proxying, nil
	}
	if there != nil && metav1.IsControlledBy(there, pod) && there.Spec.Networking.TransparentProxying != nil {
		proxying.ReachableBackendRefs = there.Spec.Networking.TransparentProxying.ReachableBackendRefs
	}
	return proxying, err
}

// IsGeneratedDataplane says whether a Dataplane was generated from a pod: only those are updated and deleted.
func IsGeneratedDataplane(dataplane *kumav1alpha1.Dataplane) bool {
	owner := metav1.GetControllerOf(dataplane)
	return IsManaged(dataplane) && owner != nil && owner.Kind == kindPod && owner.APIVersion == corev1.SchemeGroupVersion.String()
}
