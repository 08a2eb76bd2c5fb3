package member

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/capacity"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// versionServer answers what is asked when a connection is made: whether the cluster serves, which version, and whether there are
// autoscalers to watch.
type versionServer struct {
	*httptest.Server
	mu       sync.Mutex
	answers  map[string]string
	code     int
	requests int
	token    string
}

func newVersionServer(t *testing.T) *versionServer {
	t.Helper()
	s := &versionServer{code: http.StatusOK, answers: map[string]string{
		"/version":             `{"gitVersion":"v1.36.3"}`,
		"/api":                 `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":                `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"autoscaling","versions":[{"groupVersion":"autoscaling/v2","version":"v2"}]}]}`,
		"/apis/autoscaling/v2": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"autoscaling/v2","resources":[{"name":"horizontalpodautoscalers","namespaced":true,"kind":"HorizontalPodAutoscaler"}]}`,
	}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests++
		s.token = r.Header.Get("Authorization")
		if s.code == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		if s.answers[r.URL.Path] == "" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(s.code)
		_, _ = w.Write([]byte(s.answers[r.URL.Path]))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// respond has the server answer with a code, or cut the connection if that is 0.
func (s *versionServer) respond(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
}

// answer has the server say something else at a path, or nothing.
func (s *versionServer) answer(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = text
}

// seen is how often the server was asked, and the token that it was last sent.
func (s *versionServer) seen() (requests int, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.token
}

func (s *versionServer) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// joinedAsWest is what a hub has of a cluster that has joined: the Cluster, its Secret and its namespace.
func joinedAsWest(endpoint string, authority []byte) (*clusterv1alpha1.Cluster, *corev1.Secret, *corev1.Namespace) {
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "west", UID: "west", Generation: 1, Finalizers: []string{model.FinalizerCluster}},
		Spec: clusterv1alpha1.ClusterSpec{
			ID: "id-of-west", SyncMode: "Push", APIEndpoint: endpoint,
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: model.SecretNamespace, Name: "west"},
		},
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: model.SecretNamespace, Name: "west", UID: "secret"},
		Data:       map[string][]byte{secretAuthority: authority},
	}
	storeToken(secret, account, authenticationv1.TokenRequestStatus{Token: "former", ExpirationTimestamp: metav1.NewTime(issued.Add(TokenLifetime))}, issued)
	return cluster, secret, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: model.ExecutionNamespace("west")}}
}

// operator is a controller of Clusters, and what it did.
type operator struct {
	*reconciler
	hub         *adoptiontest.API
	server      *versionServer
	reconnected []string
	// enqueued are Works, and finished the clusters whose Works have all been compared once more.
	enqueued, finished []string
	// usesRoom is whether a policy needs the room of clusters, and roomRead how often that was read of the nodes.
	usesRoom bool
	roomRead int
	roomErr  error
	nodes    []corev1.Node
}

// newOperator has a hub that a cluster has joined as west, after some change, and that has other objects besides.
func newOperator(t *testing.T, change func(*clusterv1alpha1.Cluster, *corev1.Secret), others ...client.Object) *operator {
	t.Helper()
	o := &operator{server: newVersionServer(t)}
	cluster, secret, namespace := joinedAsWest(o.server.URL, o.server.authority())
	if change != nil {
		change(cluster, secret)
	}
	o.hub = adoptiontest.NewAPI(t, func(b *fake.ClientBuilder) { b.WithStatusSubresource(cluster) }, append(others, cluster, secret, namespace)...)
	o.restart(t)
	return o
}

// restart forgets what the controller has in memory.
func (o *operator) restart(t *testing.T) {
	t.Helper()
	clients := NewClients(o.hub, Limits{QPS: -1})
	t.Cleanup(func() { clients.Disconnect("west") })
	o.reconciler = &reconciler{
		client: o.hub, secrets: o.hub, members: clients, now: func() time.Time { return issued },
		onReconnect:  func(cluster string) { o.reconnected = append(o.reconnected, cluster) },
		enqueueWork:  func(key client.ObjectKey) { o.enqueued = append(o.enqueued, key.Name) },
		usesCapacity: func(context.Context) (bool, error) { return o.usesRoom, nil },
		readCapacity: func(context.Context, *Client) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary, error) {
			o.roomRead++
			if o.roomErr != nil {
				return nil, nil, o.roomErr
			}
			nodes, resources := capacity.Summarize(o.nodes, nil)
			return nodes, resources, nil
		},
	}
	clients.Rechecks.OnFinished = func(cluster string) { o.finished = append(o.finished, cluster) }
}

func (o *operator) reconcile(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := o.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "west"}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (o *operator) cluster(t *testing.T) *clusterv1alpha1.Cluster {
	t.Helper()
	return read(t, o.hub, "west", &clusterv1alpha1.Cluster{})
}

// changeSecret writes the Secret of the cluster, as another client does.
func (o *operator) changeSecret(t *testing.T, change func(*corev1.Secret)) {
	t.Helper()
	secret := read(t, o.hub, "karmada-cluster/west", &corev1.Secret{})
	change(secret)
	if err := o.hub.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

func (o *operator) deleteCluster(t *testing.T) {
	t.Helper()
	if err := o.hub.Delete(t.Context(), o.cluster(t)); err != nil {
		t.Fatal(err)
	}
	o.hub.Writes = nil
}

// metricsOf are the values of the metrics of a cluster, by name.
func metricsOf(t *testing.T, cluster string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "cluster" && label.GetValue() == cluster {
					values[family.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
	}
	return values
}
