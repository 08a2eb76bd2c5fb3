package generate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

const (
	// byMesh is by mesh; of Services by the mesh in their own label or annotation.
	byMesh = "meshservice/mesh"
	// byProxy is of Dataplanes, by proxy ID.
	byProxy = "meshservice/proxy"
	// byTag is of Dataplanes, by mesh and tag of an inbound.
	byTag = "meshservice/tag"
	// bySelector is of Services and MeshServices, by one pair of their selector.
	bySelector = "meshservice/selector"
	// byOwner is of MeshServices, by their Service.
	byOwner = "meshservice/owner"
)

func (r *reconciler) setupIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	type index struct {
		object client.Object
		field  string
		of     client.IndexerFunc
	}
	mesh := func(object client.Object) []string { return []string{desired.MeshOf(object)} }
	all := []index{
		{&kumav1alpha1.Dataplane{}, byMesh, mesh},
		{&kumav1alpha1.Dataplane{}, byTag, tagIndex},
		{&kumav1alpha1.Dataplane{}, byProxy, r.proxyIndex},
		{&kumav1alpha1.MeshService{}, byMesh, mesh},
		{&kumav1alpha1.MeshService{}, bySelector, selectorIndex},
		{&kumav1alpha1.MeshMultiZoneService{}, byMesh, mesh},
	}
	if !r.IsUniversal() {
		all = append(all,
			index{&corev1.Service{}, byMesh, func(object client.Object) []string { return []string{desired.MeshNamed(object)} }},
			index{&corev1.Service{}, bySelector, func(object client.Object) []string {
				return mostSelectivePair("", object.(*corev1.Service).Spec.Selector)
			}},
			index{&kumav1alpha1.MeshService{}, byOwner, func(object client.Object) []string {
				if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "Service" {
					return []string{owner.Name}
				}
				return nil
			}})
	}
	for _, kind := range []client.Object{&kumav1alpha1.MeshService{}, &kumav1alpha1.MeshMultiZoneService{}} {
		for field, of := range r.addressIndexes() {
			all = append(all, index{kind, field, of})
		}
	}
	for _, i := range all {
		if err := indexer.IndexField(ctx, i.object, i.field, i.of); err != nil {
			return fmt.Errorf("index %T: %w", i.object, err)
		}
	}
	return nil
}

func (r *reconciler) proxyIndex(object client.Object) []string {
	return []string{desired.ProxyOf(object.(*kumav1alpha1.Dataplane), r.ZoneInfo).String()}
}

func pair(scope, name, value string) string { return scope + "|" + name + "=" + value }

// unselective are labels and tags that many objects share.
var unselective = []string{kumav1alpha1.LabelKubernetesNamespace, kumav1alpha1.TagZone, kumav1alpha1.TagProtocol, desired.TagServicePort}

// mostSelectivePair returns the pair that a selector is indexed by.
func mostSelectivePair(scope string, selector map[string]string) []string {
	names := slices.Sorted(maps.Keys(selector))
	if len(names) == 0 {
		return nil
	}
	name := names[0]
	if i := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(unselective, name) }); i > 0 {
		name = names[i]
	}
	return []string{pair(scope, name, selector[name])}
}

// tagIndex returns all pairs that a Dataplane can be selected by.
func tagIndex(object client.Object) []string {
	dataplane := object.(*kumav1alpha1.Dataplane)
	mesh := desired.MeshOf(dataplane)
	all := map[string]bool{}
	for i := range dataplane.Spec.Networking.Inbound {
		for name, value := range dataplane.Spec.Networking.Inbound[i].Tags {
			all[pair(mesh, name, value)] = true
		}
	}
	all[pair(mesh, byNameKey, client.ObjectKeyFromObject(dataplane).String())] = true
	return slices.Collect(maps.Keys(all))
}

// byNameKey stands for the name of a Dataplane that is selected by name.
const byNameKey = ""

// selectorIndex returns the pair that a MeshService is indexed by.
func selectorIndex(object client.Object) []string {
	service := object.(*kumav1alpha1.MeshService)
	mesh := desired.MeshOf(service)
	if ref := service.Spec.Selector.DataplaneRef; ref != nil {
		return []string{pair(mesh, byNameKey, client.ObjectKey{Namespace: service.Namespace, Name: ref.Name}.String())}
	}
	return mostSelectivePair(mesh, service.Spec.Selector.DataplaneTags)
}
