package adoption

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// The keys of the Secret that a cluster is reached with.
const (
	secretToken     = "token"
	secretAuthority = "caBundle"
)

// members are the connections to the clusters that have joined.
type members struct {
	secrets client.Reader
	limits  Limits
	// wrap, if set, is what requests to the hub go through, and those to clusters too.
	wrap transport.WrapperFunc
	// heard is called with the labels of every object of ours in a cluster of which there is news.
	heard func(cluster string, labels map[string]string)

	mu    sync.Mutex
	known map[string]*member
}

// member is a connection to a cluster.
type member struct {
	name string
	// made is what it was made from: it is made anew when that changes.
	made   string
	client client.Client
	config *rest.Config
	cache  cache.Cache
	heard  func(map[string]string)
	ctx    context.Context
	stop   context.CancelFunc

	mu       sync.Mutex
	followed map[schema.GroupVersionKind]bool
	// autoscalers can be read, or when that was last refused.
	autoscalers bool
	refused     time.Time
}

// reach connects to a cluster, or finds the connection that there is.
func (m *members) reach(ctx context.Context, c *clusterv1alpha1.Cluster) (*member, error) {
	secret := &corev1.Secret{}
	if c.Spec.SecretRef == nil {
		return nil, fmt.Errorf("spec.secretRef of Cluster %s is missing: join it with `fairlead join %s`", c.Name, c.Name)
	}
	if c.Spec.SecretRef.Namespace != SecretNamespace {
		// Whoever may write Clusters would otherwise have any Secret sent to any server.
		return nil, fmt.Errorf("spec.secretRef.namespace of Cluster %s is %s: only Secrets in %s are used", c.Name, c.Spec.SecretRef.Namespace, SecretNamespace)
	}
	key := client.ObjectKey{Namespace: c.Spec.SecretRef.Namespace, Name: c.Spec.SecretRef.Name}
	if err := m.secrets.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("get the Secret that cluster %s is reached with: %w", c.Name, err)
	}
	made := c.Spec.APIEndpoint + " " + string(secret.UID) + " " + secret.ResourceVersion
	before := m.get(c.Name)
	if before != nil && before.made == made {
		return before, nil
	}
	access := accessTo(c, secret, m.limits)
	access.WrapTransport = m.wrap
	// Whatever else is asked of a cluster that does not answer takes longer, and says less.
	if _, err := alive(ctx, access); err != nil {
		return nil, err
	}
	connection, err := connect(c.Name, access, func(labels map[string]string) { m.heard(c.Name, labels) })
	if err != nil {
		return nil, err
	}
	connection.made = made
	if before != nil {
		before.stop()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[c.Name] = connection
	return connection, nil
}

// accessTo a cluster, by the token in its Secret.
func accessTo(c *clusterv1alpha1.Cluster, secret *corev1.Secret, limits Limits) *rest.Config {
	return &rest.Config{
		Host: c.Spec.APIEndpoint, BearerToken: string(secret.Data[secretToken]),
		TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data[secretAuthority]},
		QPS:             limits.QPS, Burst: limits.Burst, UserAgent: "fairlead",
	}
}

// get finds the connection to a cluster, nil if there is none.
func (m *members) get(name string) *member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[name]
}

func (m *members) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.known[name]; known != nil {
		known.stop()
		delete(m.known, name)
	}
}

func connect(name string, config *rest.Config, heard func(map[string]string)) (*member, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", name, err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", name, err)
	}
	m := &member{name: name, config: config, heard: heard, followed: map[schema.GroupVersionKind]bool{}}
	scheme := runtime.NewScheme()
	if err := autoscalingv2.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// A request that is not answered holds up others; watches, which take long by nature, are the cache's.
	impatient := rest.CopyConfig(config)
	impatient.Timeout = requestTimeout
	if m.client, err = client.New(impatient, client.Options{Mapper: mapper, Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", name, err)
	}
	m.cache, err = cache.New(config, cache.Options{
		HTTPClient: httpClient, Mapper: mapper, Scheme: scheme,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{LabelManaged: "true"}),
		DefaultTransform:     cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&autoscalingv2.HorizontalPodAutoscaler{}: {Label: labels.Everything(), Transform: onlyTarget},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("follow cluster %s: %w", name, err)
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	go func() { _ = m.cache.Start(m.ctx) }()
	return m, nil
}

// requestTimeout is how long a cluster may take over one request.
const requestTimeout = 30 * time.Second

var errUnauthorized = errors.New("it does not accept the token")

// alive asks the API server of a cluster whether it serves, and which version it is of.
func alive(ctx context.Context, config *rest.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/version", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return "", errUnauthorized
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("it answers %s", response.Status)
	}
	return versionIn(response.Body)
}

// follow has the operator hear of all objects of a kind that hubs manage in the cluster.
func (m *member) follow(kind schema.GroupVersionKind) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.followed[kind] {
		return nil
	}
	informer, err := m.cache.GetInformer(m.ctx, metadataOf(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("follow %s in cluster %s: %w", kind.Kind, m.name, err)
	}
	tell := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(metav1.Object); ok {
			m.heard(o.GetLabels())
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }, DeleteFunc: tell,
	})
	if err != nil {
		return fmt.Errorf("follow %s in cluster %s: %w", kind.Kind, m.name, err)
	}
	m.followed[kind] = true
	return nil
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// find gets an object of a cluster as it is right now, nil if it is not there.
func (m *member) find(ctx context.Context, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(like.GroupVersionKind())
	err := m.client.Get(ctx, client.ObjectKeyFromObject(like), live)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return live, nil
}
