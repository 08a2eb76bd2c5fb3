package rollout

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/rollout/objects"
)

// builtinKinds are the kinds of owned objects, without that of cert-manager, which may not be installed.
var builtinKinds = []schema.GroupVersionKind{
	objects.KindServiceAccount, objects.KindRole, objects.KindRoleBinding, objects.KindConfigMap, objects.KindService, objects.KindStatefulSet, objects.KindDeployment,
}

// ownedObjects is a cache of the objects of all environments, selected by label.
type ownedObjects struct {
	cache  cache.Cache
	client client.Client
	mapper meta.RESTMapper

	mu         sync.Mutex
	kinds      []schema.GroupVersionKind
	controller controller.Controller
}

func newOwnedObjects(mgr ctrl.Manager) (*ownedObjects, error) {
	labelled, err := labels.Parse(v1alpha2.LabelResourceID)
	if err != nil {
		return nil, err
	}
	b := &ownedObjects{mapper: mgr.GetRESTMapper()}
	b.cache, err = cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: labelled,
		DefaultTransform:     cache.TransformStripManagedFields(),
		// A kind without an informer is an error, and not cached by accident.
		ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of owned objects: %w", err)
	}
	if err := mgr.Add(b.cache); err != nil {
		return nil, fmt.Errorf("add the cache of owned objects to the manager: %w", err)
	}
	if b.client, err = kube.NewConsistentClient(mgr, client.CacheOptions{Reader: b.cache, Unstructured: true}); err != nil {
		return nil, err
	}
	for _, kind := range builtinKinds {
		if err := b.indexKind(context.Background(), kind); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *ownedObjects) indexKind(ctx context.Context, kind schema.GroupVersionKind) error {
	err := b.cache.IndexField(ctx, newUnstructured(kind), ownerIndex, func(object client.Object) []string {
		if owner := ownerOf(object); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cache %ss: %w", kind.Kind, err)
	}
	b.kinds = append(b.kinds, kind)
	return nil
}

func newUnstructured(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// ownerOf is the Materialize that controls an object.
func ownerOf(object metav1.Object) *metav1.OwnerReference {
	controller := metav1.GetControllerOf(object)
	if controller == nil || controller.Kind != v1alpha2.MaterializeKind {
		return nil
	}
	if group, err := schema.ParseGroupVersion(controller.APIVersion); err != nil || group.Group != v1alpha2.GroupVersion.Group {
		return nil
	}
	return controller
}

func (b *ownedObjects) cachedKinds() []schema.GroupVersionKind {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kinds[:len(b.kinds):len(b.kinds)]
}

// watchAll enqueues a Materialize for every change of its objects.
func (b *ownedObjects) watchAll(c controller.Controller) error {
	b.controller = c
	for _, kind := range builtinKinds {
		if err := b.watchKind(kind); err != nil {
			return err
		}
	}
	if err := b.watchCertificates(context.Background()); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("look up %s: %w", objects.KindCertificate.Kind, err)
	}
	return nil
}

func (b *ownedObjects) watchKind(kind schema.GroupVersionKind) error {
	err := b.controller.Watch(source.Kind(b.cache, newUnstructured(kind),
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object *unstructured.Unstructured) []reconcile.Request {
			owner := ownerOf(object)
			if owner == nil {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name}}}
		}), affectsPlan(kind)))
	if err != nil {
		return fmt.Errorf("watch %ss: %w", kind.Kind, err)
	}
	return nil
}

// affectsPlan filters out changes that no plan depends on: of all statuses, only that of a StatefulSet matters.
func affectsPlan(kind schema.GroupVersionKind) predicate.TypedPredicate[*unstructured.Unstructured] {
	return predicate.TypedFuncs[*unstructured.Unstructured]{
		UpdateFunc: func(e event.TypedUpdateEvent[*unstructured.Unstructured]) bool {
			before, now := e.ObjectOld, e.ObjectNew
			if before.GetResourceVersion() == now.GetResourceVersion() {
				return false
			}
			return kind != objects.KindDeployment && kind != objects.KindCertificate || before.GetGeneration() != now.GetGeneration() ||
				!labels.Equals(before.GetLabels(), now.GetLabels()) || !labels.Equals(before.GetAnnotations(), now.GetAnnotations())
		},
	}
}

// watchCertificates starts to watch Certificates, once cert-manager is installed.
func (b *ownedObjects) watchCertificates(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.kinds, objects.KindCertificate) {
		return nil
	}
	if _, err := b.mapper.RESTMapping(objects.KindCertificate.GroupKind(), objects.KindCertificate.Version); err != nil {
		return err
	}
	if err := b.indexKind(ctx, objects.KindCertificate); err != nil {
		return err
	}
	return b.watchKind(objects.KindCertificate)
}
