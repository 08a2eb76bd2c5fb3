package forecast

import (
	"cmp"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Defaults of the operator.
const (
	defaultZone      = "default"
	defaultNamespace = "kuma-system"
)

// MeshState is what the operator observes of a mesh.
type MeshState struct {
	Where  desired.ZoneInfo
	Mesh   *kumav1alpha1.Mesh
	ranges desired.Ranges
	// tags are the VIPs of values of kuma.io/service.
	tags         map[string]string
	meshServices []*kumav1alpha1.MeshService
	// allMeshServices are those of all meshes.
	allMeshServices map[types.NamespacedName]*kumav1alpha1.MeshService
	dataplanes      []*kumav1alpha1.Dataplane
	policies        []kumav1alpha1.Policy
	generators      []*kumav1alpha1.HostnameGenerator
	services        []*corev1.Service
	// pods are those of headless Services.
	pods       map[types.NamespacedName]*corev1.Pod
	namespaces map[string]*corev1.Namespace
	// multiZone are ZoneIngresses and MeshMultiZoneServices.
	multiZone []model.Object
	// notes are assumptions that the reader should know.
	notes []string
}

// NewMeshState returns the empty state of a mesh. Tags is the ConfigMap of VIPs, whose annotations have the zone of the
// operator; they are the defaults of where.
func NewMeshState(mesh *kumav1alpha1.Mesh, tags *corev1.ConfigMap, where desired.ZoneInfo) *MeshState {
	w := &MeshState{
		Mesh: mesh, Where: where, tags: tags.Data,
		namespaces: map[string]*corev1.Namespace{}, allMeshServices: map[types.NamespacedName]*kumav1alpha1.MeshService{},
		pods: map[types.NamespacedName]*corev1.Pod{},
	}
	w.Where.Zone = cmp.Or(where.Zone, tags.Annotations[kumav1alpha1.AnnotationZone])
	w.Where.Environment = cmp.Or(where.Environment, tags.Annotations[kumav1alpha1.AnnotationEnvironment], desired.Kubernetes)
	w.ranges = desired.Ranges{}.OrDefaults()
	if services, err := netip.ParsePrefix(tags.Annotations[kumav1alpha1.AnnotationServiceCIDR]); err == nil && services.Addr().Is4() {
		w.ranges.Services = services
	}
	w.Where.SystemNamespace = cmp.Or(where.SystemNamespace, defaultNamespace)
	if w.Where.Zone == "" {
		w.Where.Zone = defaultZone
		w.notes = append(w.notes, fmt.Sprintf("ConfigMap %s/%s does not name the zone of the operator, so zone %s is assumed: "+
			"give --mesh-zone for another one, and check that the operator runs with the passage meshservice.",
			w.Where.SystemNamespace, desired.VIPConfigMap(mesh.Name), defaultZone))
	}
	return w
}

// Add adds an object, unless it belongs to another mesh.
func (w *MeshState) Add(object model.Object) {
	ours := desired.MeshOf(object) == w.Mesh.Name
	switch o := object.(type) {
	case *corev1.Service:
		w.services = append(w.services, o)
	case *corev1.Pod:
		w.pods[keyOf(o)] = o
	case *corev1.Namespace:
		w.namespaces[o.Name] = o
	case *kumav1alpha1.HostnameGenerator:
		w.generators = append(w.generators, o)
	case *kumav1alpha1.ZoneIngress:
		// A ZoneIngress serves every mesh.
		w.multiZone = append(w.multiZone, o)
	case *kumav1alpha1.MeshService:
		w.allMeshServices[keyOf(o)] = o
		if ours {
			w.meshServices = append(w.meshServices, o)
		}
	case *kumav1alpha1.MeshMultiZoneService:
		if ours {
			w.multiZone = append(w.multiZone, o)
		}
	case *kumav1alpha1.Dataplane:
		if ours {
			w.dataplanes = append(w.dataplanes, o)
		}
	case kumav1alpha1.Policy:
		if ours {
			w.policies = append(w.policies, o)
		}
	}
}

func keyOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}
