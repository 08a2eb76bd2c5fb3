package member

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// operator is a controller of Clusters, and what it did.
type operator struct {
	*reconciler
	hub, member *adoptiontest.APIServer
	reconnected []string
}

// newOperator has a hub that a cluster has joined as west.
func newOperator(t *testing.T) *operator {
	t.Helper()
	o := &operator{hub: adoptiontest.NewAPIServer(t), member: newMember(t)}
	join(t, o.hub, o.member)
	secret := read(t, o.hub, "karmada-cluster/west", &corev1.Secret{})
	secret.Annotations[model.AnnotationIssued] = adoptiontest.TokensFrom.Format(time.RFC3339)
	o.hub.Put(t, secret)
	o.restart(t)
	return o
}

// restart forgets what the controller has in memory.
func (o *operator) restart(t *testing.T) {
	t.Helper()
	c := o.hub.Client(t)
	clients := NewClients(c, Limits{QPS: -1})
	t.Cleanup(func() { clients.Disconnect("west") })
	o.reconciler = &reconciler{
		client: c, secrets: c, members: clients, now: func() time.Time { return adoptiontest.TokensFrom },
		onReconnect: func(cluster string) { o.reconnected = append(o.reconnected, cluster) },
	}
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

// failAt fails the requests of a method to paths that end so.
func failAt(method, path string, err error) func(*http.Request) error {
	return func(r *http.Request) error {
		if r.Method == method && strings.HasSuffix(r.URL.Path, path) {
			return err
		}
		return nil
	}
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
	o := newOperator(t)
	c := o.cluster(t)
	c.Finalizers = nil
	o.hub.Put(t, c)
	o.hub.Remove("namespaces/karmada-es-west")
	o.hub.Requests(true)

	if result := o.reconcile(t); result.RequeueAfter != checkInterval {
		t.Errorf("checked again after %s", result.RequeueAfter)
	}
	want := []string{"PUT clusters/west", "POST namespaces", "PATCH clusters/west/status"}
	if diff := cmp.Diff(want, o.hub.Requests(false)); diff != "" {
		t.Errorf("written (-want +got)\n%s", diff)
	}
	c = o.cluster(t)
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason != string(model.ReasonReady) || c.Status.KubernetesVersion != "v1.36.3" || !slices.Contains(c.Finalizers, model.FinalizerCluster) {
		t.Errorf("%v, %s, %v", ready, c.Status.KubernetesVersion, c.Finalizers)
	}
	o.hub.Requests(true)

	o.reconcile(t)
	if written := o.hub.Requests(false); len(written) > 0 {
		t.Errorf("written without a change: %v", written)
	}
	if slices.ContainsFunc(o.member.Requests(true), func(r string) bool { return strings.Contains(r, "token") }) {
		t.Error("a token was requested that is not due")
	}
	if value := metricsOf(t, "west")["fairlead_adoption_cluster_ready"]; value != 1 {
		t.Errorf("the metric is %v", value)
	}
}

// A cluster that cannot be used is reported with what to do, keeps the version that is known of it, and is checked again.
func TestReconcileUnreachable(t *testing.T) {
	for name, c := range map[string]struct {
		cluster func(*clusterv1alpha1.Cluster)
		hub     func(*http.Request) error
		member  func(*http.Request) error
		reason  string
		message string
		asked   bool
	}{
		"the token is refused": {
			member: failAt("GET", "/version", apierrors.NewUnauthorized("expired")), asked: true,
			reason: "ClusterTokenRefused", message: "does not accept the token: the token has expired, or was revoked; `fairlead join west --member-kubeconfig FILE` gets a new one",
		},
		"the server is starting": {
			member: failAt("GET", "/version", apierrors.NewServiceUnavailable("starting")), asked: true,
			reason: "ClusterNotReachable", message: "does not respond as expected: the API server responds with 503",
		},
		"the connection is cut": {member: failAt("GET", "/version", errors.New("cut")), asked: true, reason: "ClusterNotReachable", message: "does not respond as expected: "},
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
			hub:    failAt("GET", "/secrets/west", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "west", errors.New("no"))),
			reason: "ClusterNotReachable", message: "get the Secret that cluster west is reached with: secrets \"west\" is forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t)
			cluster := o.cluster(t)
			cluster.Status.KubernetesVersion = "v1.35.0"
			if c.cluster != nil {
				c.cluster(cluster)
			}
			o.hub.Put(t, cluster, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "west"}, Data: map[string][]byte{"token": []byte("stolen")}})
			o.hub.Requests(true)
			asked := false
			o.hub.Fail = c.hub
			o.member.Fail = func(r *http.Request) error {
				asked = true
				if c.member == nil {
					return nil
				}
				return c.member(r)
			}
			if result := o.reconcile(t); result.RequeueAfter != checkInterval {
				t.Errorf("checked again after %s", result.RequeueAfter)
			}
			if slices.Contains(o.hub.Requests(true), "GET secrets/kube-system/west") {
				t.Error("a Secret of another namespace was read")
			}
			o.hub.Fail = nil
			now := o.cluster(t)
			ready := meta.FindStatusCondition(now.Status.Conditions, clusterv1alpha1.ConditionReady)
			if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != c.reason || !strings.Contains(ready.Message, c.message) || now.Status.KubernetesVersion != "v1.35.0" {
				t.Errorf("%v, version %s", ready, now.Status.KubernetesVersion)
			}
			if asked != c.asked || len(o.reconnected) > 0 || metricsOf(t, "west")["fairlead_adoption_cluster_ready"] != 0 {
				t.Errorf("asked: %t, reconnected: %v", asked, o.reconnected)
			}
		})
	}
}

// Works are reconciled once more when a cluster that was ready has a new client, because the new client watches nothing yet. One
// that becomes ready has them reconciled by its condition.
func TestReconnect(t *testing.T) {
	o := newOperator(t)
	o.reconcile(t)
	if len(o.reconnected) > 0 {
		t.Error("it was not ready before")
	}
	first := o.members.Get("west")
	o.reconcile(t)
	if o.members.Get("west") != first || len(o.reconnected) > 0 {
		t.Error("there is a new client, and nothing has changed")
	}

	secret := read(t, o.hub, "karmada-cluster/west", &corev1.Secret{})
	secret.Data["token"] = []byte("renewed")
	o.hub.Put(t, secret)
	token := ""
	o.member.Fail = func(r *http.Request) error {
		token = r.Header.Get("Authorization")
		return nil
	}
	o.reconcile(t)
	second := o.members.Get("west")
	if second == first || first.ctx.Err() == nil || second.ctx.Err() != nil || token != "Bearer renewed" || len(o.reconnected) != 1 {
		t.Errorf("a new token: the former client is stopped: %v, the server was sent %s, reconnected: %v", first.ctx.Err(), token, o.reconnected)
	}

	o.restart(t)
	// The status is not written, and the next reconciliation finds the client that this one has made.
	c := o.cluster(t)
	c.Status.KubernetesVersion = "v1.35.0"
	o.hub.Put(t, c)
	o.hub.Fail = failAt("PATCH", "/clusters/west/status", apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, "west", errors.New("modified")))
	if _, err := o.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "west"}}); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if len(o.reconnected) != 2 {
		t.Errorf("after a restart, and a conflict: %v", o.reconnected)
	}
}

// A cluster that does not respond keeps its client when its Secret changes: the client is replaced when there is a new one.
func TestConnectKeepsClient(t *testing.T) {
	o := newOperator(t)
	o.reconcile(t)
	first := o.members.Get("west")
	secret := read(t, o.hub, "karmada-cluster/west", &corev1.Secret{})
	secret.Labels = map[string]string{"touched": "true"}
	o.hub.Put(t, secret)
	o.member.Fail = failAt("GET", "/version", errors.New("cut"))
	o.reconcile(t)
	if o.members.Get("west") != first || first.ctx.Err() != nil {
		t.Error("the client was stopped, and there is no other")
	}
}

// A Cluster that is gone leaves neither a connection nor a metric.
func TestReconcileGone(t *testing.T) {
	o := newOperator(t)
	o.reconcile(t)
	m := o.members.Get("west")
	Writes.WithLabelValues("west", "create").Inc()
	recordReady("east", true)
	defer deleteMetrics("east")
	o.hub.Remove("clusters/west")
	if result := o.reconcile(t); result != (ctrl.Result{}) || o.members.Get("west") != nil || m.ctx.Err() == nil {
		t.Errorf("%v, client %v", result, o.members.Get("west"))
	}
	if west, east := metricsOf(t, "west"), metricsOf(t, "east"); len(west) > 0 || len(east) != 1 {
		t.Errorf("metrics of the cluster that is gone: %v, and of another: %v", west, east)
	}
}

// A cluster leaves when its last Work is gone, whether it can be reached or not.
func TestReconcileLeaving(t *testing.T) {
	for name, reachable := range map[string]bool{"reachable": true, "unreachable": false} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t)
			o.reconcile(t)
			for _, key := range []string{"karmada-es-west/a", "karmada-es-west/b", "karmada-es-east/a"} {
				namespace, name, _ := strings.Cut(key, "/")
				o.hub.Put(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{model.FinalizerExecution}}})
			}
			if err := o.client.Delete(t.Context(), o.cluster(t)); err != nil {
				t.Fatal(err)
			}
			o.hub.Remove("namespaces/karmada-es-west")
			o.restart(t)
			o.hub.Requests(true)
			o.reconnected = nil
			if !reachable {
				o.member.Fail = failAt("GET", "/version", errors.New("cut"))
			}
			// Another client has deleted one Work meanwhile.
			o.hub.Fail = func(r *http.Request) error {
				if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/works/b") {
					o.hub.Remove("works/karmada-es-west/b")
				}
				return nil
			}
			if result := o.reconcile(t); result.RequeueAfter != unjoinInterval || !slices.Contains(o.reconnected, "west") {
				t.Errorf("%v, the Works are enqueued: %v", result, o.reconnected)
			}
			o.reconcile(t)
			var writes []string
			for _, r := range o.hub.Requests(false) {
				if r != "PATCH clusters/west/status" {
					writes = append(writes, r)
				}
			}
			if diff := cmp.Diff([]string{"DELETE works/karmada-es-west/a", "DELETE works/karmada-es-west/b"}, writes); diff != "" {
				t.Errorf("written (-want +got)\n%s", diff)
			}
			if o.hub.Object("clusters/west") == nil {
				t.Fatal("the Cluster is gone before its Works")
			}
			o.hub.Remove("works/karmada-es-west/a")
			if result := o.reconcile(t); result != (ctrl.Result{}) || o.hub.Object("clusters/west") != nil || o.members.Get("west") != nil {
				t.Errorf("%v, there is %v, connected: %t", result, o.hub.Object("clusters/west"), o.members.Get("west") != nil)
			}
			if o.hub.Object("works/karmada-es-east/a").GetDeletionTimestamp() != nil {
				t.Error("a Work of another cluster is deleted")
			}
		})
	}
}

// A Cluster that has left, and that the finalizer of another controller keeps, gets no finalizer again: an API server refuses that.
func TestReconcileLeft(t *testing.T) {
	o := newOperator(t)
	c := o.cluster(t)
	c.Finalizers = []string{"example.com/inventory"}
	o.hub.Put(t, c)
	if err := o.client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	o.hub.Requests(true)
	if result := o.reconcile(t); result != (ctrl.Result{}) || o.members.Get("west") != nil {
		t.Errorf("%v, connected: %t", result, o.members.Get("west") != nil)
	}
	if diff := cmp.Diff([]string{"PATCH clusters/west/status"}, o.hub.Requests(false)); diff != "" {
		t.Errorf("written (-want +got)\n%s", diff)
	}
}

// A request that the hub refuses is an error, names the object and is tried again; what comes after it is not done.
func TestReconcileErrors(t *testing.T) {
	refused := apierrors.NewInternalError(errors.New("no leader"))
	for name, c := range map[string]struct {
		method, path string
		leaving      bool
		want         string
	}{
		"the Cluster cannot be read":      {"GET", "/clusters/west", false, "no leader"},
		"the finalizer cannot be added":   {"PUT", "/clusters/west", false, "add the finalizer of Cluster west: "},
		"the namespace cannot be created": {"POST", "/namespaces", false, "create namespace karmada-es-west: "},
		"the status cannot be written":    {"PATCH", "/clusters/west/status", false, "no leader"},
		"the Works cannot be listed":      {"GET", "/works", true, "list the Works of cluster west: "},
		"a Work cannot be deleted":        {"DELETE", "/works/a", true, "delete Work karmada-es-west/a: "},
		"the finalizer cannot be removed": {"PATCH", "/clusters/west", true, "remove the finalizer of Cluster west: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t)
			cluster := o.cluster(t)
			if c.leaving {
				if err := o.client.Delete(t.Context(), cluster); err != nil {
					t.Fatal(err)
				}
			} else {
				cluster.Finalizers = nil
				o.hub.Put(t, cluster)
				o.hub.Remove("namespaces/karmada-es-west")
			}
			if c.path == "/works/a" {
				o.hub.Put(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: "a"}})
			}
			o.hub.Fail = failAt(c.method, c.path, refused)
			_, err := o.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "west"}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if o.hub.Object("clusters/west") == nil {
				t.Error("the Cluster is gone")
			}
		})
	}
}
