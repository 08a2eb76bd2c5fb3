package forecast

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Load reads the state of a mesh. Empty fields of where are as the operator recorded them.
func Load(ctx context.Context, reader client.Reader, name string, where desired.ZoneInfo) (*MeshState, error) {
	var mesh kumav1alpha1.Mesh
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &mesh); err != nil {
		return nil, fmt.Errorf("get Mesh %s: %w", name, err)
	}
	tags, err := loadVIPs(ctx, reader, name, cmp.Or(where.SystemNamespace, defaultNamespace))
	if err != nil {
		return nil, err
	}
	recorded, err := consumers.ReadRecord(ctx, reader, &mesh)
	if err != nil {
		return nil, err
	}
	w := NewMeshState(recorded, tags, where)
	kinds := []client.ObjectList{
		&kumav1alpha1.MeshServiceList{}, &kumav1alpha1.MeshMultiZoneServiceList{}, &kumav1alpha1.HostnameGeneratorList{},
		&kumav1alpha1.DataplaneList{}, &kumav1alpha1.ZoneIngressList{},
		&kumav1alpha1.MeshTimeoutList{}, &kumav1alpha1.MeshRetryList{}, &kumav1alpha1.MeshCircuitBreakerList{},
		&kumav1alpha1.MeshLoadBalancingStrategyList{}, &kumav1alpha1.MeshHTTPRouteList{}, &kumav1alpha1.MeshTCPRouteList{},
	}
	if !w.Where.IsUniversal() {
		kinds = append(kinds, &corev1.NamespaceList{}, &corev1.ServiceList{})
	}
	for _, kind := range kinds {
		if err := w.list(ctx, reader, kind); err != nil {
			return nil, err
		}
	}
	// Only the pods of headless Services are called one by one.
	for _, s := range w.services {
		namespace := w.namespaces[s.Namespace]
		if namespace == nil || !desired.IsInMesh(s, namespace) || !desired.IsHeadless(s) {
			continue
		}
		selected := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(s.Spec.Selector)}
		if err := w.list(ctx, reader, &corev1.PodList{}, client.InNamespace(s.Namespace), selected); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// loadVIPs returns the first ConfigMap of VIPs of a mesh, with the VIPs of all.
func loadVIPs(ctx context.Context, reader client.Reader, mesh, namespace string) (*corev1.ConfigMap, error) {
	all := &corev1.ConfigMap{}
	for shard := 0; ; shard++ {
		var one corev1.ConfigMap
		key := client.ObjectKey{Namespace: namespace, Name: desired.VIPShard(mesh, shard)}
		switch err := reader.Get(ctx, key, &one); {
		case apierrors.IsNotFound(err):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("get ConfigMap %s: %w", key, err)
		case shard == 0:
			all = &one
		case all.Data == nil:
			all.Data = one.Data
		default:
			maps.Copy(all.Data, one.Data)
		}
	}
}

// list adds all objects of a kind.
func (w *MeshState) list(ctx context.Context, reader client.Reader, into client.ObjectList, options ...client.ListOption) error {
	what := strings.TrimSuffix(reflect.TypeOf(into).Elem().Name(), "List")
	if err := reader.List(ctx, into, options...); meta.IsNoMatchError(err) {
		return fmt.Errorf("list each %s: %w: install the CRDs with `fairlead crds install`", what, err)
	} else if err != nil {
		return fmt.Errorf("list each %s: %w", what, err)
	}
	items, err := meta.ExtractList(into)
	if err != nil {
		return fmt.Errorf("list each %s: %w", what, err)
	}
	for _, item := range items {
		if object, ok := item.(client.Object); ok {
			w.Add(object)
		}
	}
	return nil
}

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
	allMeshServices map[client.ObjectKey]*kumav1alpha1.MeshService
	dataplanes      []*kumav1alpha1.Dataplane
	policies        []kumav1alpha1.Policy
	generators      []*kumav1alpha1.HostnameGenerator
	services        []*corev1.Service
	// pods are those of headless Services.
	pods       map[client.ObjectKey]*corev1.Pod
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
		namespaces: map[string]*corev1.Namespace{}, allMeshServices: map[client.ObjectKey]*kumav1alpha1.MeshService{},
		pods: map[client.ObjectKey]*corev1.Pod{},
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
	switch o := object.(type) {
	case *corev1.Service:
		w.services = append(w.services, o)
	case *corev1.Pod:
		w.pods[client.ObjectKeyFromObject(o)] = o
	case *corev1.Namespace:
		w.namespaces[o.Name] = o
	case *kumav1alpha1.HostnameGenerator:
		w.generators = append(w.generators, o)
	case *kumav1alpha1.ZoneIngress:
		// A ZoneIngress serves every mesh.
		w.multiZone = append(w.multiZone, o)
	case *kumav1alpha1.MeshService:
		w.allMeshServices[client.ObjectKeyFromObject(o)] = o
	}
	if desired.MeshOf(object) != w.Mesh.Name {
		return
	}
	switch o := object.(type) {
	case *kumav1alpha1.MeshService:
		w.meshServices = append(w.meshServices, o)
	case *kumav1alpha1.MeshMultiZoneService:
		w.multiZone = append(w.multiZone, o)
	case *kumav1alpha1.Dataplane:
		w.dataplanes = append(w.dataplanes, o)
	case kumav1alpha1.Policy:
		w.policies = append(w.policies, o)
	}
}
