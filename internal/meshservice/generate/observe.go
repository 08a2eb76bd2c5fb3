package generate

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

// CacheOptions are those of the manager's cache: it holds stripped pods, and of the ConfigMaps only those of VIPs.
func CacheOptions(where desired.ZoneInfo) cache.Options {
	managed := labels.SelectorFromSet(labels.Set{kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy})
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:       {Transform: stripPod},
			&corev1.ConfigMap{}: {Label: managed, Namespaces: map[string]cache.Config{where.SystemNamespace: {}}},
		},
	}
}

// stripPod keeps the fields of a pod that Dataplanes are generated from.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
			OwnerReferences: pod.OwnerReferences, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Annotations: desired.KumaAnnotations(pod.Annotations),
		},
		Spec:   corev1.PodSpec{HostNetwork: pod.Spec.HostNetwork, Containers: portsOnly(pod.Spec.Containers), InitContainers: portsOnly(pod.Spec.InitContainers)},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP},
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			kept.Status.Conditions = []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return kept, nil
}

func portsOnly(containers []corev1.Container) []corev1.Container {
	var all []corev1.Container
	for _, container := range containers {
		if len(container.Ports) > 0 {
			all = append(all, corev1.Container{Ports: container.Ports})
		}
	}
	return all
}

// namespace returns the metadata of a namespace, empty if it does not exist.
func (r *reconciler) namespace(ctx context.Context, name string) (metav1.Object, error) {
	namespace := metadataOf("v1", "Namespace")
	err := r.cache.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy)
	return namespace, client.IgnoreNotFound(err)
}

// rulesOf returns the rules of a namespace; there are none in universal.
func (r *reconciler) rulesOf(ctx context.Context, name string) (desired.NamespaceRules, error) {
	if r.IsUniversal() || name == r.SystemNamespace {
		return desired.NamespaceRules{}, nil
	}
	namespace, err := r.namespace(ctx, name)
	return desired.RulesOf(namespace), err
}

func metadataOf(apiVersion, kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
}

// modeOf returns the generatedMode of a mesh, and whether the Mesh exists. For a Mesh that was deleted a moment ago, it returns a
// meshDeletedError.
func (r *reconciler) modeOf(ctx context.Context, name string) (kumav1alpha1.Mode, bool, error) {
	var mesh kumav1alpha1.Mesh
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, &mesh, client.UnsafeDisableDeepCopy)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return kumav1alpha1.ModeDisabled, false, err
	case err == nil && mesh.DeletionTimestamp == nil:
		r.deleted.exists(name)
		return generatedMode(&mesh), true, nil
	}
	known := r.deleted.knows(name)
	if !known {
		if known, err = r.hasObjects(ctx, name); err != nil {
			return kumav1alpha1.ModeDisabled, false, err
		}
	}
	if !known {
		return kumav1alpha1.ModeDisabled, false, nil
	}
	if left := r.deleted.remaining(name, r.MeshGrace, r.now()); left > 0 {
		return kumav1alpha1.ModeDisabled, false, meshDeletedError{name, left}
	}
	return kumav1alpha1.ModeDisabled, false, nil
}

// generatedMode is the mode to generate for. What was generated for another mode is deleted only when the status says Disabled,
// from which a mesh that is not Disabled any more starts anew. Until then that mesh still is in Exclusive, and must have lost nothing.
func generatedMode(mesh *kumav1alpha1.Mesh) kumav1alpha1.Mode {
	if mode := mesh.Mode(); mode != kumav1alpha1.ModeDisabled || mesh.Status.Mode == "" {
		return mode
	}
	return mesh.Status.Mode
}

// hasObjects says whether a mesh has MeshServices or Dataplanes.
func (r *reconciler) hasObjects(ctx context.Context, mesh string) (bool, error) {
	for _, list := range []client.ObjectList{&kumav1alpha1.MeshServiceList{}, &kumav1alpha1.DataplaneList{}} {
		err := r.cache.List(ctx, list, client.MatchingFields{byMesh: mesh}, client.Limit(1), client.UnsafeDisableDeepCopy)
		if err != nil || meta.LenList(list) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// pointersTo returns the addresses of the items of a list.
func pointersTo[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// dataplanesWith returns the Dataplanes with an indexed pair.
func (r *reconciler) dataplanesWith(ctx context.Context, pair string) ([]*kumav1alpha1.Dataplane, error) {
	var list kumav1alpha1.DataplaneList
	if err := r.cache.List(ctx, &list, client.MatchingFields{byTag: pair}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return pointersTo(list.Items), nil
}

// servicesIn returns the Services of a mesh, except in terminating namespaces.
func (r *reconciler) servicesIn(ctx context.Context, mesh string) ([]*corev1.Service, error) {
	namespaces := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}
	if err := r.cache.List(ctx, namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var all []*corev1.Service
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		if namespace.DeletionTimestamp != nil {
			continue
		}
		// Services without a mesh label belong to the mesh of the namespace.
		values := []string{mesh}
		if desired.IsInjected(namespace) && desired.MeshOfWorkload(namespace, namespace) == mesh {
			values = append(values, "")
		}
		for _, value := range values {
			var services corev1.ServiceList
			err := r.cache.List(ctx, &services, client.InNamespace(namespace.Name), client.MatchingFields{byMesh: value}, client.UnsafeDisableDeepCopy)
			if err != nil {
				return nil, err
			}
			all = append(all, pointersTo(services.Items)...)
		}
	}
	return all, nil
}

// servicesSelecting returns the Services that select a pod.
func (r *reconciler) servicesSelecting(ctx context.Context, pod *corev1.Pod) ([]*corev1.Service, error) {
	var all []*corev1.Service
	for name, value := range pod.Labels {
		var list corev1.ServiceList
		err := r.cache.List(ctx, &list, client.InNamespace(pod.Namespace), client.MatchingFields{bySelector: pair("", name, value)}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if desired.Selects(&list.Items[i], pod) {
				all = append(all, &list.Items[i])
			}
		}
	}
	return all, nil
}

func (r *reconciler) policiesOf(ctx context.Context, mesh string) ([]policy.Policy, error) {
	var all []policy.Policy
	for _, kind := range policyKinds() {
		if err := r.client.List(ctx, kind.list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		_ = meta.EachListItem(kind.list, func(item runtime.Object) error { // never fails
			if p := item.(policy.Policy); desired.MeshOf(p) == mesh {
				all = append(all, p)
			}
			return nil
		})
	}
	return all, nil
}

// destinationsOf returns all destinations that policies of a mesh can refer to, and false until its tags are recorded.
func (r *reconciler) destinationsOf(ctx context.Context, mesh string) (all []model.Destination, known bool, err error) {
	shards, err := r.vipShards(ctx, r.cache, mesh)
	if err != nil || shards[0].UID == "" {
		return nil, false, err
	}
	for _, shard := range shards {
		for service := range shard.Data {
			all = append(all, model.Destination{Target: model.Target{Key: model.TagKey(service)}})
		}
	}
	of := []client.ListOption{client.MatchingFields{byMesh: mesh}, client.UnsafeDisableDeepCopy}
	var services kumav1alpha1.MeshServiceList
	if err := r.client.List(ctx, &services, of...); err != nil {
		return nil, false, err
	}
	for i := range services.Items {
		for _, port := range services.Items[i].Spec.Ports {
			one := r.destination(model.MeshService, &services.Items[i], port)
			all = append(all, one)
			if headless := desired.HeadlessService(&services.Items[i], r.ZoneInfo); headless != "" {
				all = append(all, one.ForHeadless(headless))
			}
		}
	}
	var multiZone kumav1alpha1.MeshMultiZoneServiceList
	if err := r.client.List(ctx, &multiZone, of...); err != nil {
		return nil, false, err
	}
	for i := range multiZone.Items {
		for _, port := range multiZone.Items[i].Spec.Ports {
			all = append(all, r.destination(model.MeshMultiZoneService, &multiZone.Items[i], kumav1alpha1.Port{Port: port.Port, Name: port.Name}))
		}
	}
	return all, true, nil
}

// vipShards returns the ConfigMaps that record the VIPs of a mesh, each at its number; those that are missing are empty.
func (r *reconciler) vipShards(ctx context.Context, reader client.Reader, mesh string) ([]*corev1.ConfigMap, error) {
	var list corev1.ConfigMapList
	labels := client.MatchingLabels{kumav1alpha1.LabelMesh: mesh, kumav1alpha1.LabelManagedBy: kumav1alpha1.ManagedBy}
	if err := reader.List(ctx, &list, client.InNamespace(r.SystemNamespace), labels, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	all := []*corev1.ConfigMap{{}}
	for i := range list.Items {
		shard, found := desired.ShardOf(list.Items[i].Name, mesh)
		if !found {
			continue
		}
		for len(all) <= shard {
			all = append(all, &corev1.ConfigMap{})
		}
		all[shard] = &list.Items[i]
	}
	if all[0].UID != "" {
		return all, nil
	}
	// Somebody may have removed its labels.
	first := client.ObjectKey{Namespace: r.SystemNamespace, Name: desired.VIPConfigMap(mesh)}
	return all, client.IgnoreNotFound(reader.Get(ctx, first, all[0]))
}

func (r *reconciler) destination(kind model.Kind, object client.Object, port kumav1alpha1.Port) model.Destination {
	id := desired.IdentityOf(object, r.ZoneInfo)
	if kind == model.MeshMultiZoneService {
		id.Zone = ""
	}
	return model.Destination{
		Target: model.Target{
			Key:  model.Key{Kind: kind, Name: id.Name, Namespace: id.Namespace, Zone: id.Zone, Mesh: desired.MeshOf(object), Port: uint32(port.Port)},
			Name: object.GetName(), Namespace: object.GetNamespace(), Labels: desired.LabelsOf(object, r.ZoneInfo),
		},
		Section: port.SectionName(), Local: id.Local,
	}
}

// localTags returns the values of kuma.io/service that Dataplanes of a mesh serve, perhaps repeated.
func (r *reconciler) localTags(ctx context.Context, mesh string) (all []string, err error) {
	var dataplanes kumav1alpha1.DataplaneList
	err = r.cache.List(ctx, &dataplanes, client.MatchingFields{byMesh: mesh}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	for i := range dataplanes.Items {
		rules, err := r.rulesOf(ctx, dataplanes.Items[i].Namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, desired.ServicesOf(&dataplanes.Items[i], rules, r.ZoneInfo)...)
	}
	return all, nil
}

// servedTags returns the values of kuma.io/service that are served in a mesh, in all zones.
func (r *reconciler) servedTags(ctx context.Context, mesh string) ([]string, error) {
	all, err := r.localTags(ctx, mesh)
	if err != nil {
		return nil, err
	}
	var ingresses kumav1alpha1.ZoneIngressList
	if err := r.cache.List(ctx, &ingresses, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range ingresses.Items {
		for _, t := range r.ingressTags(ctx, &ingresses.Items[i]) {
			if t.Namespace == mesh {
				all = append(all, t.Name)
			}
		}
	}
	return all, nil
}

// clusterIPs returns the addresses that Kubernetes gives a service of this zone, and false if it gives none.
func (r *reconciler) clusterIPs(ctx context.Context, service *kumav1alpha1.MeshService) (addresses []string, own bool, err error) {
	name := desired.BackingService(service, r.ZoneInfo)
	if name == "" {
		return nil, false, nil
	}
	behind, err := kube.GetIfExists(ctx, r.cache, client.ObjectKey{Namespace: service.Namespace, Name: name}, &corev1.Service{})
	if err != nil {
		return nil, false, err
	}
	var named *corev1.Pod
	if ref := service.Spec.Selector.DataplaneRef; ref != nil && behind != nil && desired.IsHeadless(behind) {
		if named, err = kube.GetIfExists(ctx, r.cache, client.ObjectKey{Namespace: service.Namespace, Name: ref.Name}, &corev1.Pod{}); err != nil {
			return nil, false, err
		}
	}
	addresses, own = desired.KubernetesAddresses(service, behind, named, r.ZoneInfo)
	return addresses, own, nil
}

// othersIndexed returns all other services that an index has under a key.
func othersIndexed(ctx context.Context, reader client.Reader, of client.Object, index, key string, options ...client.ListOption) ([]client.Object, error) {
	var all []client.Object
	for _, list := range []client.ObjectList{&kumav1alpha1.MeshServiceList{}, &kumav1alpha1.MeshMultiZoneServiceList{}} {
		if err := reader.List(ctx, list, append(options, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy)...); err != nil {
			return nil, err
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error { // never fails
			if other := item.(client.Object); other.GetUID() != of.GetUID() {
				all = append(all, other)
			}
			return nil
		})
	}
	return all, nil
}

// universalName returns the name of the MeshService of a service, and the existing MeshService.
func (r *reconciler) universalName(ctx context.Context, service, mesh string) (there *kumav1alpha1.MeshService, name string, free bool, err error) {
	found := map[string]*kumav1alpha1.MeshService{}
	var errs []error
	name, free = desired.UniversalName(service, mesh, func(name string) *kumav1alpha1.MeshService {
		one, err := kube.GetIfExists(ctx, r.client, client.ObjectKey{Namespace: r.SystemNamespace, Name: name}, &kumav1alpha1.MeshService{})
		found[name], errs = one, append(errs, err)
		return one
	}, r.ZoneInfo)
	return found[name], name, free, errors.Join(errs...)
}

// selectedDataplanes returns the Dataplanes that a MeshService may select.
func (r *reconciler) selectedDataplanes(ctx context.Context, service *kumav1alpha1.MeshService) ([]*kumav1alpha1.Dataplane, error) {
	for _, pair := range selectorIndex(service) {
		return r.dataplanesWith(ctx, pair)
	}
	return nil, nil
}
