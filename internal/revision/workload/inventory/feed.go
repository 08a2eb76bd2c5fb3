package inventory

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Feed keeps a fleet up to date with caches: one made with CacheOptions, and one made with those of the package usage.
// Both may be the same.
func (f *Fleet) Feed(ctx context.Context, deployments, users cache.Cache) (synced func() bool, err error) {
	var done []toolscache.InformerSynced
	for _, feed := range []struct {
		kind    string
		object  client.Object
		cache   cache.Cache
		handler toolscache.ResourceEventHandler
	}{
		{kindNamespace, usage.MetadataOf(kindNamespace), users, f.handler(
			func(o any) { f.enterNamespace(o.(metav1.Object)) },
			func(name toolscache.ObjectName) { delete(f.namespaces, name.Name); f.changed() },
		)},
		{kindPod, usage.MetadataOf(kindPod), users, f.handler(
			func(o any) { f.enterPod(o.(metav1.Object)) },
			func(name toolscache.ObjectName) { f.setPod(name.AsNamespacedName(), member{}) },
		)},
		{kindDeployment, &appsv1.Deployment{}, deployments, f.handler(
			func(o any) { f.enterDeployment(o.(*appsv1.Deployment)) },
			func(name toolscache.ObjectName) {
				delete(f.deployments, name.AsNamespacedName())
				f.sorted = nil
				f.changed()
			},
		)},
	} {
		informer, err := feed.cache.GetInformer(ctx, feed.object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("cache each %s: %w", feed.kind, err)
		}
		registration, err := informer.AddEventHandler(feed.handler)
		if err != nil {
			return nil, fmt.Errorf("follow each %s: %w", feed.kind, err)
		}
		done = append(done, registration.HasSynced)
	}
	return func() bool {
		for _, synced := range done {
			if !synced() {
				return false
			}
		}
		return true
	}, nil
}

func (f *Fleet) handler(enter func(object any), remove func(toolscache.ObjectName)) toolscache.ResourceEventHandler {
	locked := func(write func()) {
		f.mu.Lock()
		defer f.mu.Unlock()
		write()
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { locked(func() { enter(object) }) },
		UpdateFunc: func(_, object any) { locked(func() { enter(object) }) },
		DeleteFunc: func(object any) {
			name, err := toolscache.DeletionHandlingObjectToName(object)
			if err != nil {
				utilruntime.HandleError(fmt.Errorf("see what was deleted: %w", err))
				return
			}
			locked(func() { remove(name) })
		},
	}
}
