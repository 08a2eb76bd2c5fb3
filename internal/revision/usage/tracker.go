package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// +kubebuilder:rbac:groups="",resources=namespaces;pods,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=daemonsets;deployments;replicasets;statefulsets,verbs=list;watch
// +kubebuilder:rbac:groups=batch,resources=cronjobs;jobs,verbs=list;watch
// +kubebuilder:rbac:groups=sailoperator.io,resources=istiorevisiontags,verbs=list;watch

// Tracker updates the index with events. The cost of an event does not depend on the size of the cluster.
type Tracker struct {
	mu            sync.RWMutex
	index         *index
	subscriptions map[*subscription]struct{}

	kinds []watchedKind
	// watchErrors may be nil.
	watchErrors *WatchErrors
}

// watchedKind is a kind that the Tracker watches.
type watchedKind struct {
	kind   string
	synced toolscache.DoneChecker
}

// NewTracker watches namespaces and pods in a cache made with CacheOptions, workloads in one made with TemplateCacheOptions,
// and tags in another. It does not wait for sync.
func NewTracker(ctx context.Context, informers, workloads, tags cache.Informers) (*Tracker, error) {
	t := newTracker()
	handlers := t.handlers()
	type feed struct {
		from   cache.Informers
		kind   string
		object client.Object
	}
	feeds := []feed{
		{informers, kindNamespace, MetadataOf(kindNamespace)},
		{informers, kindPod, MetadataOf(kindPod)},
		{tags, v1.IstioRevisionTagKind, &v1.IstioRevisionTag{}},
	}
	for _, k := range templateKinds {
		feeds = append(feeds, feed{workloads, k.kind, k.object})
	}
	for _, f := range feeds {
		synced, err := AddEventHandler(ctx, f.from, f.kind, f.object, handlers[f.kind])
		if err != nil {
			return nil, err
		}
		t.kinds = append(t.kinds, watchedKind{f.kind, synced})
	}
	return t, nil
}

// AddEventHandler adds a handler to the cache of a kind, which need not have synced.
func AddEventHandler(ctx context.Context, informers cache.Informers, kind string, object client.Object,
	handler toolscache.ResourceEventHandler,
) (toolscache.DoneChecker, error) {
	informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("cache every %s: %w", kind, err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, fmt.Errorf("watch every %s: %w", kind, err)
	}
	return registration.HasSyncedChecker(), nil
}

func newTracker() *Tracker {
	return &Tracker{index: newIndex(), subscriptions: map[*subscription]struct{}{}}
}

// HasSynced tells whether all objects that existed when the Tracker started are in the index.
func (t *Tracker) HasSynced() bool { return len(t.unsyncedKinds()) == 0 }

// unsyncedKinds are the kinds that have not been listed yet.
func (t *Tracker) unsyncedKinds() []string {
	var kinds []string
	for _, f := range t.kinds {
		if !toolscache.IsDone(f.synced) {
			kinds = append(kinds, f.kind)
		}
	}
	return kinds
}

func (t *Tracker) waitForSync(ctx context.Context) error {
	for _, f := range t.kinds {
		select {
		case <-f.synced.Done():
		case <-ctx.Done():
			return fmt.Errorf("track usage of revisions and tags: not synced yet: %s: %w",
				strings.Join(t.unsyncedKinds(), ", "), context.Cause(ctx))
		}
	}
	return nil
}

// Revision is who uses the revision of that name: by label, by annotation or as a tag.
func (t *Tracker) Revision(name string) Usage { return t.usage(name, asRevision) }

// Tag is who uses the tag of that name: by label.
func (t *Tracker) Tag(name string) Usage { return t.usage(name, asTag) }

func (t *Tracker) usage(name string, as role) Usage {
	t.mu.RLock()
	defer t.mu.RUnlock()
	u := t.index.usage(name, as)
	if t.watchErrors != nil {
		u.Forbidden = t.watchErrors.Forbidden()
	}
	return u
}

// References are all that use the revision of that name.
func (t *Tracker) References(name string) []Reference { return t.references(name, asRevision) }

// TagReferences are all that use the tag of that name.
func (t *Tracker) TagReferences(name string) []Reference { return t.references(name, asTag) }

func (t *Tracker) references(name string, as role) []Reference {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.index.references(name, as)
}

// Unresolved are the names that labels refer to and of which none exists, sorted.
func (t *Tracker) Unresolved(exists func(name string) bool) []NameUsage {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var found []NameUsage
	for _, name := range slices.Sorted(maps.Keys(t.index.users)) {
		if t.index.users[name].usedAsTag() && !exists(name) {
			found = append(found, NameUsage{name, t.index.usage(name, asTag)})
		}
	}
	return found
}

func (t *Tracker) handlers() map[string]toolscache.ResourceEventHandler {
	handlers := map[string]toolscache.ResourceEventHandler{
		kindNamespace: t.handler(kindNamespace,
			func(object any) []change { return t.index.observeNamespace(object.(metav1.Object)) },
			func(key toolscache.ObjectName) []change { return t.index.setNamespace(key.Name, policy{}) },
		),
		kindPod: t.handler(kindPod,
			func(object any) []change { return t.index.observePod(object.(metav1.Object)) },
			func(key toolscache.ObjectName) []change { return t.index.setPod(key.Namespace, key.Name, pod{}) },
		),
		v1.IstioRevisionTagKind: t.handler(v1.IstioRevisionTagKind,
			func(object any) []change { return t.index.observeTag(object.(*v1.IstioRevisionTag)) },
			func(key toolscache.ObjectName) []change { return t.index.setTag(key.Name, tag{}) },
		),
	}
	for _, k := range templateKinds {
		handlers[k.kind] = t.handler(k.kind,
			func(object any) []change { return t.index.observeWorkload(k.kind, object.(metav1.Object)) },
			func(key toolscache.ObjectName) []change {
				return t.index.setWorkload(key.Namespace, workload{k.kind, key.Name}, pod{})
			},
		)
	}
	return handlers
}

func (t *Tracker) handler(kind string, enter func(object any) []change, remove func(toolscache.ObjectName) []change,
) toolscache.ResourceEventHandler {
	return EventHandler(
		func(object any) { t.update(kind, func() []change { return enter(object) }) },
		func(name toolscache.ObjectName) { t.update(kind, func() []change { return remove(name) }) },
	)
}

// EventHandler observes objects that are added or changed, and removes deleted ones by name.
func EventHandler(observe func(object any), remove func(toolscache.ObjectName)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, object any) { observe(object) },
		DeleteFunc: func(object any) {
			name, err := toolscache.DeletionHandlingObjectToName(object)
			if err != nil {
				utilruntime.HandleError(fmt.Errorf("handle a deletion event: %w", err))
				return
			}
			remove(name)
		},
	}
}

// update changes the index and enqueues under one lock: a reconcile finds the change in the index.
func (t *Tracker) update(kind string, write func() []change) {
	if t.watchErrors != nil {
		t.watchErrors.clear(kind)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range write() {
		for s := range t.subscriptions {
			s.enqueue(c, time.Now())
		}
	}
}
