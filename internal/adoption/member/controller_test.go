package member

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

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
	if len(o.hub.Writes) > 0 {
		t.Errorf("written: %v", o.hub.Writes)
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
		"the Works cannot be listed":      {"list Work", true, nil, "list the Works of cluster west: ", nil},
		"a Work cannot be deleted":        {"delete Work a", true, []client.Object{work}, "delete Work karmada-es-west/a: ", nil},
		"the finalizer cannot be removed": {"patch Cluster west", true, nil, "remove the finalizer of Cluster west: ", nil},
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
