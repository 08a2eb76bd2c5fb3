package foreign

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// watches have the Deployments and Leases of an Observer. Listing all of a large cluster every few seconds costs its API server
// much more than a watch of the few with the right names and labels.
type watches struct{ deployments, leases []cache.SharedIndexInformer }

// Watch starts to watch Deployments and Leases, until the context ends. From then on, the Observer no longer lists them.
func (o *Observer) Watch(ctx context.Context) {
	w := &watches{}
	for _, by := range o.deploymentSelectors() {
		w.deployments = append(w.deployments, watch(ctx, o.apps, "deployments", &appsv1.Deployment{}, by))
	}
	for _, by := range o.leaseSelectors() {
		w.leases = append(w.leases, watch(ctx, o.coordination, "leases", &coordinationv1.Lease{}, by))
	}
	o.watches = w
}

func watch(ctx context.Context, c rest.Interface, resource string, kind runtime.Object, by metav1.ListOptions) cache.SharedIndexInformer {
	informer := cache.NewSharedIndexInformer(cache.NewFilteredListWatchFromClient(c, resource, metav1.NamespaceAll, func(options *metav1.ListOptions) {
		options.FieldSelector, options.LabelSelector = by.FieldSelector, by.LabelSelector
	}), kind, 0, nil)
	go informer.RunWithContext(ctx)
	return informer
}

// inStores are the objects that informers have, and false until all of them have synced.
func inStores[T any](informers []cache.SharedIndexInformer) (all []T, synced bool) {
	for _, informer := range informers {
		if !informer.HasSynced() {
			return nil, false
		}
		for _, object := range informer.GetStore().List() {
			all = append(all, object.(T))
		}
	}
	return all, true
}
