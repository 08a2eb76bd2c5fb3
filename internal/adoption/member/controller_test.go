package member

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
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

// A Cluster that was created by hand gets its finalizer and its namespace, and one that is as it should be is not written again.
func TestReconcileClusterCreatedByHand(t *testing.T) {
	o := newOperator(t, func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) { c.Finalizers = nil })
	remove(t, o.hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-west"}})
	o.hub.Writes = nil

	if result := o.reconcile(t); result.RequeueAfter != checkInterval {
		t.Errorf("checked again after %s", result.RequeueAfter)
	}
	if diff := cmp.Diff([]string{"update Cluster west", "create Namespace karmada-es-west", "apply status"}, o.hub.Writes); diff != "" {
		t.Errorf("written (-want +got)\n%s", diff)
	}
	c := o.cluster(t)
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason != string(model.ReasonReady) || c.Status.KubernetesVersion != "v1.36.3" || !slices.Contains(c.Finalizers, model.FinalizerCluster) {
		t.Errorf("%v, %s, %v", ready, c.Status.KubernetesVersion, c.Finalizers)
	}
	o.hub.Writes = nil

	o.reconcile(t)
	if len(o.hub.Writes) > 0 {
		t.Errorf("written without a change: %v", o.hub.Writes)
	}
	if value := metricsOf(t, "west")["fairlead_adoption_cluster_ready"]; value != 1 {
		t.Errorf("the metric is %v", value)
	}
}

// A cluster that cannot be used is reported with what to do, keeps the version that is known of it, and is checked again.
func TestReconcileUnreachable(t *testing.T) {
	for name, c := range map[string]struct {
		cluster func(*clusterv1alpha1.Cluster)
		hub     error
		member  int
		reason  string
		message string
		asked   bool
	}{
		"the token is refused": {
			member: http.StatusUnauthorized, asked: true,
			reason: "ClusterTokenRefused", message: "does not accept the token: the token has expired, or was revoked; `fairlead join west --member-kubeconfig FILE` gets a new one",
		},
		"the server is starting": {
			member: http.StatusServiceUnavailable, asked: true,
			reason: "ClusterNotReachable", message: "does not respond as expected: the API server responds with 503",
		},
		"the connection is cut": {asked: true, reason: "ClusterNotReachable", message: "does not respond as expected: "},
		"there is no secretRef": {
			cluster: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = nil },
			reason:  "ClusterNotReachable", message: "spec.secretRef of Cluster west is missing: join it with `fairlead join west`",
		},
		"the Secret is of another namespace": {
			cluster: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef.Namespace = "kube-system" },
			reason:  "ClusterNotReachable", message: "spec.secretRef.namespace of Cluster west is kube-system: only Secrets in karmada-cluster are used",
		},
		"the Secret does not exist": {
			cluster: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef.Name = "east" },
			reason:  "ClusterNotReachable", message: `get the Secret that cluster west is reached with: secrets "east" not found`,
		},
		"the Secret may not be read": {
			hub:    apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "west", errors.New("no")),
			reason: "ClusterNotReachable", message: "get the Secret that cluster west is reached with: secrets \"west\" is forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stolen := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "west"}, Data: map[string][]byte{"token": []byte("stolen")}}
			o := newOperator(t, func(cluster *clusterv1alpha1.Cluster, _ *corev1.Secret) {
				cluster.Status.KubernetesVersion = "v1.35.0"
				if c.cluster != nil {
					c.cluster(cluster)
				}
			}, stolen)
			o.server.respond(c.member)
			o.hub.On = func(verb string, object client.Object) error {
				if _, ok := object.(*corev1.Secret); !ok {
					return nil
				}
				if object.GetNamespace() != model.SecretNamespace {
					t.Errorf("%s Secret %s of another namespace", verb, client.ObjectKeyFromObject(object))
				}
				return c.hub
			}
			if result := o.reconcile(t); result.RequeueAfter != checkInterval {
				t.Errorf("checked again after %s", result.RequeueAfter)
			}
			now := o.cluster(t)
			ready := meta.FindStatusCondition(now.Status.Conditions, clusterv1alpha1.ConditionReady)
			if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != c.reason || !strings.Contains(ready.Message, c.message) || now.Status.KubernetesVersion != "v1.35.0" {
				t.Errorf("%v, version %s", ready, now.Status.KubernetesVersion)
			}
			if requests, _ := o.server.seen(); (requests > 0) != c.asked || len(o.reconnected) > 0 || metricsOf(t, "west")["fairlead_adoption_cluster_ready"] != 0 {
				t.Errorf("asked: %d times, reconnected: %v", requests, o.reconnected)
			}
		})
	}
}

// Works are reconciled once more when a cluster that was ready has a new client, because the new client watches nothing yet. One
// that becomes ready has them reconciled by its condition.
func TestReconnect(t *testing.T) {
	o := newOperator(t, nil)
	o.reconcile(t)
	if len(o.reconnected) > 0 {
		t.Error("it was not ready before")
	}
	first := o.members.Get("west")
	o.reconcile(t)
	if o.members.Get("west") != first || len(o.reconnected) > 0 {
		t.Error("there is a new client, and nothing has changed")
	}

	o.changeSecret(t, func(s *corev1.Secret) { s.Data["token"] = []byte("renewed") })
	o.reconcile(t)
	second := o.members.Get("west")
	_, token := o.server.seen()
	if second == first || first.ctx.Err() == nil || second.ctx.Err() != nil || token != "Bearer renewed" || len(o.reconnected) != 1 {
		t.Errorf("a new token: the former client is stopped: %v, the server was sent %s, reconnected: %v", first.ctx.Err(), token, o.reconnected)
	}

	o.restart(t)
	// The status is not written, and the next reconciliation finds the client that this one has made.
	c := o.cluster(t)
	c.Status.KubernetesVersion = "v1.35.0"
	if err := o.hub.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	o.hub.On = adoptiontest.Refuse("apply status", apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, "west", errors.New("modified")))
	if _, err := o.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "west"}}); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if len(o.reconnected) != 2 {
		t.Errorf("after a restart, and a conflict: %v", o.reconnected)
	}
}

// A cluster that does not respond keeps its client when its Secret changes: the client is replaced when there is a new one.
func TestConnectKeepsClient(t *testing.T) {
	o := newOperator(t, nil)
	o.reconcile(t)
	first := o.members.Get("west")
	o.changeSecret(t, func(s *corev1.Secret) { s.Labels = map[string]string{"touched": "true"} })
	o.server.respond(0)
	o.reconcile(t)
	if o.members.Get("west") != first || first.ctx.Err() != nil {
		t.Error("the client was stopped, and there is no other")
	}
}

// A cluster that does not serve autoscalers is one like any other.
func TestConnectWithoutAutoscalers(t *testing.T) {
	o := newOperator(t, nil)
	o.server.answer("/apis", `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`)
	o.server.answer("/apis/autoscaling/v2", "")
	o.reconcile(t)
	c := o.cluster(t)
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady) {
		t.Fatalf("%v", c.Status.Conditions)
	}
	object, live := adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 2}"), adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 3}")
	if scaled, err := o.members.Get("west").IsAutoscaled(t.Context(), object, live); scaled || err != nil {
		t.Errorf("%t, %v", scaled, err)
	}
}

// A Cluster that is gone leaves neither a connection nor a metric.
func TestReconcileGone(t *testing.T) {
	o := newOperator(t, nil)
	o.reconcile(t)
	m := o.members.Get("west")
	Writes.WithLabelValues("west", "create").Inc()
	recordReady("east", true)
	defer deleteMetrics("east")
	remove(t, o.hub, o.cluster(t))
	if result := o.reconcile(t); result != (ctrl.Result{}) || o.members.Get("west") != nil || m.ctx.Err() == nil {
		t.Errorf("%v, client %v", result, o.members.Get("west"))
	}
	if west, east := metricsOf(t, "west"), metricsOf(t, "east"); len(west) > 0 || len(east) != 1 {
		t.Errorf("metrics of the cluster that is gone: %v, and of another: %v", west, east)
	}
}

// A cluster leaves when its last Work is gone, whether it can be reached or not.
func TestReconcileLeaving(t *testing.T) {
	work := func(namespace, name string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{model.FinalizerExecution}}}
	}
	for name, code := range map[string]int{"reachable": http.StatusOK, "unreachable": 0} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t, nil, work("karmada-es-west", "a"), work("karmada-es-west", "b"), work("karmada-es-east", "a"))
			o.reconcile(t)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-west"}}
			remove(t, o.hub, namespace)
			o.deleteCluster(t)
			o.restart(t)
			o.server.respond(code)
			// Another client has deleted one Work meanwhile.
			deletions := 0
			o.hub.On = func(verb string, object client.Object) error {
				if w, ok := object.(*workv1alpha1.Work); ok && verb == "delete" {
					if deletions++; w.Name == "b" {
						remove(t, o.hub, work("karmada-es-west", "b"))
					}
				}
				return nil
			}
			if result := o.reconcile(t); result.RequeueAfter != unjoinInterval || !slices.Contains(o.reconnected, "west") {
				t.Errorf("%v, the Works are enqueued: %v", result, o.reconnected)
			}
			o.reconcile(t)
			if a := read(t, o.hub, "karmada-es-west/a", &workv1alpha1.Work{}); a.DeletionTimestamp == nil || deletions != 2 {
				t.Errorf("a Work is deleted at %v, after %d deletions", a.DeletionTimestamp, deletions)
			}
			if o.cluster(t); o.hub.Exists(t, namespace) {
				t.Error("a cluster that leaves gets its namespace again")
			}
			remove(t, o.hub, work("karmada-es-west", "a"))
			if result := o.reconcile(t); result != (ctrl.Result{}) || o.hub.Exists(t, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}) || o.members.Get("west") != nil {
				t.Errorf("%v, connected: %t, or the Cluster is still there", result, o.members.Get("west") != nil)
			}
			if read(t, o.hub, "karmada-es-east/a", &workv1alpha1.Work{}).DeletionTimestamp != nil {
				t.Error("a Work of another cluster is deleted")
			}
		})
	}
}

// A Cluster that has left, and that the finalizer of another controller keeps, gets no finalizer again: an API server refuses that.
func TestReconcileLeft(t *testing.T) {
	o := newOperator(t, func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) { c.Finalizers = []string{"example.com/inventory"} })
	o.deleteCluster(t)
	if result := o.reconcile(t); result != (ctrl.Result{}) || o.members.Get("west") != nil {
		t.Errorf("%v, connected: %t", result, o.members.Get("west") != nil)
	}
	if diff := cmp.Diff([]string{"apply status"}, o.hub.Writes); diff != "" {
		t.Errorf("written (-want +got)\n%s", diff)
	}
}

// A request that the hub refuses is an error, names the object and is tried again; what comes after it is not done.
func TestReconcileErrors(t *testing.T) {
	refused := apierrors.NewInternalError(errors.New("no leader"))
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: "a"}}
	for name, c := range map[string]struct {
		request string
		leaving bool
		works   []client.Object
		want    string
		writes  []string
	}{
		"the Cluster cannot be read":      {"get Cluster west", false, nil, "no leader", nil},
		"the finalizer cannot be added":   {"update Cluster west", false, nil, "add the finalizer of Cluster west: ", nil},
		"the namespace cannot be created": {"create Namespace karmada-es-west", false, nil, "create namespace karmada-es-west: ", []string{"update Cluster west"}},
		"the status cannot be written":    {"apply status", false, nil, "write the status of Cluster west: ", []string{"update Cluster west", "create Namespace karmada-es-west"}},
		"the Works cannot be listed":      {"list Work", true, nil, "list the Works of cluster west: ", []string{"apply status"}},
		"a Work cannot be deleted":        {"delete Work a", true, []client.Object{work}, "delete Work karmada-es-west/a: ", []string{"apply status"}},
		"the finalizer cannot be removed": {"patch Cluster west", true, nil, "remove the finalizer of Cluster west: ", []string{"apply status"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t, func(cluster *clusterv1alpha1.Cluster, _ *corev1.Secret) {
				if !c.leaving {
					cluster.Finalizers = nil
				}
			}, c.works...)
			if c.leaving {
				o.deleteCluster(t)
			} else {
				remove(t, o.hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-west"}})
			}
			o.hub.Writes = nil
			o.hub.On = adoptiontest.Refuse(c.request, refused)
			o.hub.OnList = func(kind, _ string) error {
				if c.request == "list "+kind {
					return refused
				}
				return nil
			}
			_, err := o.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "west"}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(c.writes, o.hub.Writes); diff != "" {
				t.Errorf("written (-want +got)\n%s", diff)
			}
			o.hub.On, o.hub.OnList = nil, nil
			o.cluster(t)
		})
	}
}
