package forecast

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// Load reads the state of a mesh. Empty fields of where are as the operator recorded them.
func Load(ctx context.Context, reader client.Reader, name string, where desired.ZoneInfo) (*MeshState, error) {
	var mesh kumav1alpha1.Mesh
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &mesh); err != nil {
		return nil, fmt.Errorf("get Mesh %s: %w", name, err)
	}
	var tags corev1.ConfigMap
	key := client.ObjectKey{Namespace: cmp.Or(where.SystemNamespace, defaultNamespace), Name: desired.VIPConfigMap(name)}
	if err := reader.Get(ctx, key, &tags); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	w := NewMeshState(&mesh, &tags, where)
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
