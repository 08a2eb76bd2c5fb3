package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// The tags by which an inbound says which Service it comes from.
const (
	TagServiceName = "k8s.kuma.io/service-name"
	TagServicePort = "k8s.kuma.io/service-port"
)

// The kinds of what owns generated resources.
const (
	kindService = "Service"
	kindPod     = "Pod"
)

// HasEligiblePorts says whether a Service leads to pods, so that it can be one of the mesh.
func HasEligiblePorts(service *corev1.Service) bool {
	return service.Spec.Type != corev1.ServiceTypeExternalName && len(service.Spec.Selector) > 0 && len(tcpPorts(service)) > 0 &&
		!IsIgnored(service) && service.DeletionTimestamp == nil
}

// IsInMesh says whether a Service of that namespace is one of a mesh.
func IsInMesh(service *corev1.Service, namespace metav1.Object) bool {
	if !HasEligiblePorts(service) || IsIgnored(namespace) {
		return false
	}
	return IsInjected(namespace) || service.Labels[kumav1alpha1.LabelMesh] != ""
}

// IsHeadless says whether a Service has no address of its own, so that its pods are called one by one.
func IsHeadless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

// MeshServicesOf are those that a Service asks for: one, or one for each of these pods if it is headless.
func MeshServicesOf(service *corev1.Service, namespace metav1.Object, pods []*corev1.Pod, where ZoneInfo) []*kumav1alpha1.MeshService {
	if !IsInMesh(service, namespace) {
		return nil
	}
	if !IsHeadless(service) {
		one := meshServiceOf(service, namespace, service.Name, where)
		one.Spec.Selector.DataplaneTags = map[string]string{
			TagServiceName: service.Name, kumav1alpha1.LabelKubernetesNamespace: service.Namespace,
		}
		return []*kumav1alpha1.MeshService{one}
	}
	var all []*kumav1alpha1.MeshService
	mesh := MeshOfWorkload(service, namespace)
	for _, pod := range pods {
		if !HasProxy(pod, namespace) || MeshOfWorkload(pod, namespace) != mesh {
			continue
		}
		one := meshServiceOf(service, namespace, podServiceName(service.Name, pod.Name), where)
		one.Spec.Selector.DataplaneRef = &kumav1alpha1.DataplaneRef{Name: pod.Name}
		all = append(all, one)
	}
	return all
}

func meshServiceOf(service *corev1.Service, namespace metav1.Object, name string, where ZoneInfo) *kumav1alpha1.MeshService {
	labels := inheritedLabels(service.Labels)
	maps.Copy(labels, identityLabels(name, service.Namespace, MeshOfWorkload(service, namespace), where))
	labels[TagServiceName] = service.Name
	return &kumav1alpha1.MeshService{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: service.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{ownedBy(service, kindService)},
		},
		Spec: kumav1alpha1.MeshServiceSpec{Ports: portsOf(service)},
	}
}

// identityLabels are the labels that tell what a generated resource is, and where it comes from.
func identityLabels(name, namespace, mesh string, where ZoneInfo) map[string]string {
	labels := map[string]string{
		kumav1alpha1.LabelMesh: mesh, kumav1alpha1.LabelDisplayName: name, kumav1alpha1.LabelZone: where.Zone,
		kumav1alpha1.LabelOrigin: kumav1alpha1.OriginZone, kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy,
	}
	if namespace != "" {
		labels[kumav1alpha1.LabelNamespace], labels[kumav1alpha1.LabelKubernetesNamespace] = namespace, namespace
	}
	return labels
}

func ownedBy(owner metav1.Object, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: corev1.SchemeGroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: ptr.To(true),
	}
}

// podServiceName is the name of the MeshService for one pod of a headless Service: one that can be read, and that no other
// Service or pod leads to.
func podServiceName(service, pod string) string {
	sum := sha256.Sum256([]byte(service + "/" + pod))
	end := "-" + hex.EncodeToString(sum[:4])
	name := pod
	if !strings.HasPrefix(pod, service+"-") {
		name = service + "-" + pod
	}
	name = strings.ReplaceAll(name, ".", "-")
	name = strings.TrimRight(name[:min(len(name), validation.DNS1035LabelMaxLength-len(end))], "-")
	return name + end
}

// HeadlessService is the headless Service that a MeshService was generated for a pod of, by its name in the same namespace; empty for
// any other.
func HeadlessService(service *kumav1alpha1.MeshService, where ZoneInfo) string {
	if where.IsUniversal() || service.Spec.Selector.DataplaneRef == nil || !IsGenerated(service, where) {
		return ""
	}
	return metav1.GetControllerOf(service).Name
}

// IsGenerated says whether a MeshService was made by this zone: only those are changed, and removed when they are not wanted
// any more. The label alone does not tell, for it is synced to other zones.
func IsGenerated(service *kumav1alpha1.MeshService, where ZoneInfo) bool {
	if !IsManaged(service) || !IdentityOf(service, where).Local {
		return false
	}
	owner := metav1.GetControllerOf(service)
	if where.IsUniversal() {
		return owner == nil && service.Namespace == where.SystemNamespace
	}
	return owner != nil && owner.Kind == kindService && owner.APIVersion == corev1.SchemeGroupVersion.String()
}
