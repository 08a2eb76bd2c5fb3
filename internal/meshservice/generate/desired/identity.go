// Package desired decides what the mesh holds because of what runs: the MeshServices that Services and Dataplanes ask for,
// the Dataplanes that pods ask for, and the addresses and hostnames of services.
package desired

import (
	"cmp"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// The environments.
const (
	Kubernetes = "kubernetes"
	Universal  = "universal"
)

// ZoneInfo is what is known of the zone that is looked at.
type ZoneInfo struct {
	// Environment is Kubernetes or Universal.
	Environment string
	// Zone is its name.
	Zone string
	// SystemNamespace holds what was synced from other zones and, in universal, everything.
	SystemNamespace string
}

// IsUniversal says whether services come from Dataplanes, and not from Services.
func (w ZoneInfo) IsUniversal() bool { return w.Environment == Universal }

// Identity is who a MeshService or MeshMultiZoneService is, in the zone that it comes from.
type Identity struct {
	// Namespace is empty for what comes from a zone in universal.
	Name, Namespace, Zone string
	// Local says that it comes from this zone.
	Local bool
}

// IdentityOf tells who a resource is. Its labels are believed where only the owner of the mesh writes: in the system
// namespace, and in universal. Anywhere else it is what it is called, or a tenant could claim the service of another.
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

// LabelsOf are the labels of a resource, with those that say who it is as they are believed.
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

// MeshOf is the mesh that a resource of the mesh is part of.
func MeshOf(object metav1.Object) string {
	return cmp.Or(object.GetLabels()[kumav1alpha1.LabelMesh], kumav1alpha1.DefaultMesh)
}

// IsManaged says whether Fairlead made a resource, and may change it.
func IsManaged(object metav1.Object) bool {
	return object.GetLabels()[kumav1alpha1.LabelManagedBy] == kumav1alpha1.ManagedBy
}
