package inventory

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Watch keeps the inventory up to date with two caches: one made with CacheOptions, one with those of the package usage. Both
// may be the same.
func (t *Tracker) Watch(ctx context.Context, workloads, users cache.Cache) (synced func() bool, err error) {
	type feed struct {
		kind    string
		object  client.Object
		cache   cache.Cache
		handler toolscache.ResourceEventHandler
	}
	feeds := []feed{
		{kindNamespace, usage.MetadataOf(kindNamespace), users, t.handler(
			func(o any) { t.observeNamespace(o.(metav1.Object)) },
			func(name toolscache.ObjectName) { delete(t.namespaces, name.Name); t.changed(Decisive) },
		)},
		{kindPod, usage.MetadataOf(kindPod), users, t.handler(
			func(o any) { t.observePod(o.(metav1.Object)) },
			func(name toolscache.ObjectName) { t.setPod(name.AsNamespacedName(), podOwner{}) },
		)},
		{kindCronJob, &batchv1.CronJob{}, workloads, t.handler(
			func(o any) { t.observeCronJob(o.(metav1.Object)) },
			func(name toolscache.ObjectName) { t.removeCronJob(name.AsNamespacedName()) },
		)},
	}
	for _, k := range kinds {
		feeds = append(feeds, feed{k.name, k.object, workloads, t.handler(
			func(o any) { t.observeWorkload(From(o)) },
			func(name toolscache.ObjectName) { t.removeWorkload(key{name.AsNamespacedName(), k.name}) },
		)})
	}
	var done []toolscache.DoneChecker
	for _, feed := range feeds {
		kindSynced, err := usage.AddEventHandler(ctx, feed.cache, feed.kind, feed.object, feed.handler)
		if err != nil {
			return nil, err
		}
		done = append(done, kindSynced)
	}
	return func() bool {
		return !slices.ContainsFunc(done, func(kind toolscache.DoneChecker) bool { return !toolscache.IsDone(kind) })
	}, nil
}

func (t *Tracker) handler(enter func(object any), remove func(toolscache.ObjectName)) toolscache.ResourceEventHandler {
	locked := func(write func()) {
		t.mu.Lock()
		defer t.mu.Unlock()
		write()
	}
	return usage.EventHandler(
		func(object any) { locked(func() { enter(object) }) },
		func(name toolscache.ObjectName) { locked(func() { remove(name) }) },
	)
}
