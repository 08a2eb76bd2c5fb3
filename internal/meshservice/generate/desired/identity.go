// Package desired plans the resources of a mesh: MeshServices of Services and Dataplanes, Dataplanes of pods, and the VIPs
// and hostnames of services. It is pure.
package desired

import (
	"cmp"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// The environments.
const (
	Kubernetes = "kubernetes"
	Universal  = "universal"
)

// ZoneInfo describes the zone of the control plane.
type ZoneInfo struct {
	// Environment is Kubernetes or Universal.
	Environment string
	// Zone is its name.
	Zone string
	// SystemNamespace holds resources synced from other zones and, in universal, all resources.
	SystemNamespace string
}

// IsUniversal says whether services come from Dataplanes, not from Services.
func (w ZoneInfo) IsUniversal() bool { return w.Environment == Universal }

// Identity is that of a MeshService or MeshMultiZoneService in its own zone.
type Identity struct {
	// Namespace is empty for what comes from a zone in universal.
	Name, Namespace, Zone string
	// Local says that the zone is the one of the control plane.
	Local bool
}

// IdentityOf returns the identity of a resource. Its labels are trusted where only the mesh owner writes: in the system
// namespace, and in universal. Elsewhere a tenant could claim the service of another.
func IdentityOf(object metav1.Object, where ZoneInfo) Identity {
	id := Identity{Name: object.GetName(), Namespace: object.GetNamespace(), Zone: where.Zone, Local: true}
	if where.IsUniversal() {
		id.Namespace = ""
	} else if object.GetNamespace() != where.SystemNamespace {
		return id
	}
	labels := object.GetLabels()
	id.Name = cmp.Or(labels[kumav1alpha1.LabelDisplayName], id.Name)
	id.Zone = cmp.Or(labels[kumav1alpha1.LabelZone], id.Zone)
	id.Local = id.Zone == where.Zone
	if !where.IsUniversal() || !id.Local {
		id.Namespace = cmp.Or(labels[kumav1alpha1.LabelNamespace], labels[kumav1alpha1.LabelKubernetesNamespace], id.Namespace)
	}
	return id
}

// LabelsOf returns the labels of a resource, with the identity labels as trusted.
func LabelsOf(object metav1.Object, where ZoneInfo) map[string]string {
	id := IdentityOf(object, where)
	labels := map[string]string{}
	maps.Copy(labels, object.GetLabels())
	for label, value := range map[string]string{
		kumav1alpha1.LabelDisplayName: id.Name, kumav1alpha1.LabelZone: id.Zone,
		kumav1alpha1.LabelNamespace: id.Namespace, kumav1alpha1.LabelKubernetesNamespace: id.Namespace,
	} {
		if value == "" {
			delete(labels, label)
		} else {
			labels[label] = value
		}
	}
	return labels
}

// MeshOf returns the mesh of a resource: that of its label, or else of its field mesh if the kind has one, or else default.
func MeshOf(object metav1.Object) string {
	field := ""
	if named, has := object.(interface{ MeshField() string }); has {
		field = named.MeshField()
	}
	return cmp.Or(object.GetLabels()[kumav1alpha1.LabelMesh], field, kumav1alpha1.DefaultMesh)
}

// IsManaged says whether Fairlead manages a resource.
func IsManaged(object metav1.Object) bool {
	return object.GetLabels()[kumav1alpha1.LabelManagedBy] == kumav1alpha1.ManagedBy
}

// IsIntermediateOwner says whether the owner of a pod has an owner itself.
func IsIntermediateOwner(owner *metav1.OwnerReference) bool {
	return owner != nil && (owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.APIVersion, "apps/") ||
		owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/"))
}

// ConsumerOf returns the workload of a pod as Kind/name, given the owner of its owner.
func ConsumerOf(pod metav1.Object, ownersOwner *metav1.OwnerReference) string {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return kindPod + "/" + pod.GetName()
	case IsIntermediateOwner(owner) && ownersOwner != nil:
		owner = ownersOwner
	}
	return owner.Kind + "/" + owner.Name
}

// maxConsumer is the longest Kind/name of a workload: it is recorded for each switched consumer, and anybody who writes a Dataplane
// writes the annotation.
const maxConsumer = 63 + 1 + 253

// ConsumerIn returns the workload of a Dataplane as namespace/Kind/name; in universal the name of the Dataplane.
func ConsumerIn(dataplane *kumav1alpha1.Dataplane, where ZoneInfo) string {
	if where.IsUniversal() {
		return dataplane.Name
	}
	consumer := dataplane.Annotations[kumav1alpha1.AnnotationConsumer]
	if consumer == "" || len(consumer) > maxConsumer {
		consumer = kumav1alpha1.DataplaneKind + "/" + dataplane.Name
	}
	return dataplane.Namespace + "/" + consumer
}

func nameOf(consumer string) string {
	_, name, _ := strings.Cut(consumer, "/")
	return name
}
