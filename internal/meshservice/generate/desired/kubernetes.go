package desired

import (
	"cmp"
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

// HasEligiblePorts says whether a Service can be part of a mesh.
func HasEligiblePorts(service *corev1.Service) bool {
	return service.Spec.Type != corev1.ServiceTypeExternalName && len(service.Spec.Selector) > 0 && len(tcpPorts(service)) > 0 &&
		!IsIgnored(service) && service.DeletionTimestamp == nil
}

// IsInMesh says whether a Service is part of a mesh.
func IsInMesh(service *corev1.Service, namespace metav1.Object) bool {
	if !HasEligiblePorts(service) || IsIgnored(namespace) {
		return false
	}
	return IsInjected(namespace) || service.Labels[kumav1alpha1.LabelMesh] != ""
}

// IsHeadless says whether a Service has no ClusterIP, so that its pods are called one by one.
func IsHeadless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

// MeshServicesOf returns the MeshServices of a Service: one, or one for each of these pods if it is headless. The existing ones of
// pods keep their names where another control plane has generated them.
func MeshServicesOf(service *corev1.Service, namespace metav1.Object, pods []*corev1.Pod, there []*kumav1alpha1.MeshService, where ZoneInfo) []*kumav1alpha1.MeshService {
	if !IsInMesh(service, namespace) || RefusedMesh(service, namespace, where) != "" {
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
		name := cmp.Or(takenOverName(service, pod.Name, there, where), podServiceName(service.Name, pod.Name))
		one := meshServiceOf(service, namespace, name, where)
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

// identityLabels are the identity labels of a generated resource.
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

// podServiceName is the unique and readable name of the MeshService of one pod of a headless Service.
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

// takenOverName is the name of the existing MeshService of a pod of a headless Service that another control plane has generated under
// a name of its own, empty if there is none. Under another name, the pod would have other hostnames.
func takenOverName(service *corev1.Service, pod string, there []*kumav1alpha1.MeshService, where ZoneInfo) string {
	found := ""
	for _, one := range there {
		ref, isLabel := one.Spec.Selector.DataplaneRef, len(one.Name) <= validation.DNS1035LabelMaxLength
		if ref == nil || ref.Name != pod || one.Namespace != service.Namespace || one.DeletionTimestamp != nil || !isLabel ||
			one.Name == podServiceName(service.Name, pod) || HeadlessService(one, where) != service.Name {
			continue
		}
		if found == "" || one.Name < found {
			found = one.Name
		}
	}
	return found
}

// HeadlessService is the name of the headless Service that a MeshService was generated for, empty for any other.
func HeadlessService(service *kumav1alpha1.MeshService, where ZoneInfo) string {
	if where.IsUniversal() || service.Spec.Selector.DataplaneRef == nil || !IsGenerated(service, where) {
		return ""
	}
	return metav1.GetControllerOf(service).Name
}

// IsGenerated says whether a MeshService was generated by this zone: only those are updated and deleted. The label alone is
// not enough, since it is synced to other zones.
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
