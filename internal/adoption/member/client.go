package member

import (
	"context"
	"fmt"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Client is a connection to a cluster.
type Client struct {
	Name string
	// source identifies the endpoint and the Secret: when it changes, the client is replaced.
	source  string
	API     client.Client
	Config  *rest.Config
	cache   cache.Cache
	onEvent func(map[string]string)
	ctx     context.Context
	Stop    context.CancelFunc

	mu      sync.Mutex
	watched map[schema.GroupVersionKind]cache.Informer
	removed map[client.ObjectKey]removedJob
	// autoscalersListed holds once autoscalers could be listed; autoscalersRefused is when that was last refused.
	autoscalersListed  bool
	autoscalersRefused time.Time
	capacity           capacityState
}

func newClient(name string, config *rest.Config, onEvent func(map[string]string)) (*Client, error) {
	// A request that is not answered holds up others; watches, which take long by nature, are the cache's.
	limited := withTimeout(config)
	httpClient, err := rest.HTTPClientFor(limited)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", name, err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(limited, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", name, err)
	}
	m := &Client{Name: name, Config: config, onEvent: onEvent, watched: map[schema.GroupVersionKind]cache.Informer{}}
	if m.API, err = client.New(limited, client.Options{HTTPClient: httpClient, Mapper: mapper}); err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", name, err)
	}
	watches := map[client.Object]cache.ByObject{}
	for kind, watch := range map[schema.GroupVersionKind]struct {
		object client.Object
		cache.ByObject
	}{
		autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"): {
			&autoscalingv2.HorizontalPodAutoscaler{}, cache.ByObject{Label: labels.Everything(), Transform: keepScaleTarget},
		},
		jobKind: {&batchv1.Job{}, cache.ByObject{Transform: keepJobStatus}},
	} {
		// A cache refuses kinds that the cluster does not have. Without the version, each that the cluster names would be asked for.
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("discover the kinds of cluster %s: %w", name, err)
		}
		watches[watch.object] = watch.ByObject
	}
	m.cache, err = cache.New(config, cache.Options{
		Mapper:               mapper,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{model.LabelManaged: "true"}),
		DefaultTransform:     keepLabels,
		ByObject:             watches,
	})
	if err != nil {
		return nil, fmt.Errorf("watch cluster %s: %w", name, err)
	}
	m.ctx, m.Stop = context.WithCancel(context.Background())
	go func() { _ = m.cache.Start(m.ctx) }()
	return m, nil
}

// keepLabels drops all of an object but what identifies it, and its labels of ownership.
func keepLabels(object any) (any, error) {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: keepIdentity(o.ObjectMeta)}
	for _, label := range model.OwnershipLabels {
		if value, found := o.Labels[label]; found {
			metav1.SetMetaDataLabel(&kept.ObjectMeta, label, value)
		}
	}
	return kept, nil
}

// requestTimeout is how long a cluster may take over one request.
const requestTimeout = 30 * time.Second

func withTimeout(config *rest.Config) *rest.Config {
	limited := rest.CopyConfig(config)
	limited.Timeout = requestTimeout
	return limited
}

// Watch watches the managed objects of a kind.
func (m *Client) Watch(kind schema.GroupVersionKind) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watched[kind] != nil {
		return nil
	}
	informer, err := m.cache.GetInformer(m.ctx, watchedAs(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s in cluster %s: %w", kind.Kind, m.Name, err)
	}
	notify := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(metav1.Object); ok {
			m.onEvent(o.GetLabels())
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(_, now any) { notify(now) },
		DeleteFunc: func(object any) {
			m.recordRemoval(object)
			notify(object)
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s in cluster %s: %w", kind.Kind, m.Name, err)
	}
	m.watched[kind] = informer
	return nil
}

// watchedAs is how the objects of a kind are watched.
func watchedAs(kind schema.GroupVersionKind) client.Object {
	if kind == jobKind {
		// Of a Job that is removed, the last event tells whether it had finished.
		return newJob()
	}
	return model.NewMetadata(kind)
}

// WatchedVersion is the VersionOf a managed object in its last event, empty if there was none.
func (m *Client) WatchedVersion(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) string {
	m.mu.Lock()
	informer := m.watched[kind]
	m.mu.Unlock()
	if informer == nil || !informer.HasSynced() {
		return ""
	}
	object := watchedAs(kind)
	if err := m.cache.Get(ctx, key, object); err != nil {
		return ""
	}
	return VersionOf(object)
}

// VersionOf tells one version of an object from all others, those of an object of that name in another cluster included.
func VersionOf(object client.Object) string {
	return string(object.GetUID()) + "/" + object.GetResourceVersion()
}

// Get reads an object from the API server, nil if there is none.
func (m *Client) Get(ctx context.Context, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(like.GroupVersionKind())
	if err := m.API.Get(ctx, client.ObjectKeyFromObject(like), live); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if live.GroupVersionKind() != like.GroupVersionKind() || live.GetNamespace() != like.GetNamespace() || live.GetName() != like.GetName() {
		return nil, AsUserError(answerError(live))
	}
	if live.GroupVersionKind() == jobKind {
		m.forgetRemoval(live)
	}
	return live, nil
}

// answerError is for an object that was not asked for. It could otherwise be written to the hub as if it had been.
func answerError(got *unstructured.Unstructured) error {
	return fmt.Errorf("the cluster answers with %s %s: find out what serves its API", got.GetKind(), model.NameOf(got))
}
