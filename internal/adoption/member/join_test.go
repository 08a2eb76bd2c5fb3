package member

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

var account = accountName("hub")

// newMember is a cluster that has not joined.
func newMember(t *testing.T) *adoptiontest.API {
	t.Helper()
	return adoptiontest.NewAPI(t, nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "id-of-west"}})
}

// joinAsWest is Join, once there is a connection.
func joinAsWest(t *testing.T, hub, member *adoptiontest.API) error {
	t.Helper()
	config := &rest.Config{Host: "https://west", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("authority")}}
	return join(t.Context(), hub, member, "hub", "west", config)
}

// read gets an object of a namespace, if it is in one, and a name: "namespace/name".
func read[T client.Object](t *testing.T, api client.Reader, key string, object T) T {
	t.Helper()
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// remove deletes an object, whatever finalizers it has.
func remove(t *testing.T, api *adoptiontest.API, object client.Object) {
	t.Helper()
	on := api.On
	api.On = nil
	defer func() { api.On = on }()
	if !api.Exists(t, object) {
		return
	}
	object.SetFinalizers(nil)
	if err := api.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := api.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// What a join writes, in this order. The token comes after all that the token is for, and the Cluster, with which the operator
// begins, comes last.
var (
	memberWrites = []string{
		"create Namespace fairlead-member", "create ClusterRole fairlead-member", "create ClusterRole fairlead-member-common",
		"create ServiceAccount " + account, "create Role " + account, "create RoleBinding " + account,
		"create ClusterRoleBinding fairlead-member-" + account, "create token ServiceAccount " + account,
	}
	hubWrites = []string{"create Namespace karmada-cluster", "create Namespace karmada-es-west", "create Secret west", "create Cluster west"}
)

func isJoined(t *testing.T, hub, member *adoptiontest.API) {
	t.Helper()
	for _, object := range append(memberRoles(), accountObjects(account)...) {
		if !member.Exists(t, object) {
			t.Errorf("the cluster has no %s", describe(member, object))
		}
	}
	for _, namespace := range []string{"karmada-cluster", "karmada-es-west"} {
		read(t, hub, namespace, &corev1.Namespace{})
	}
	secret := read(t, hub, "karmada-cluster/west", &corev1.Secret{})
	if string(secret.Data["token"]) != "fake-token" || string(secret.Data["caBundle"]) != "authority" ||
		secret.Annotations[model.AnnotationAccount] != account || isRenewalDue(secret, time.Now()) {
		t.Errorf("the Secret has %v, %v", secret.Annotations, secret.Data)
	}
	c := read(t, hub, "west", &clusterv1alpha1.Cluster{})
	want := clusterv1alpha1.ClusterSpec{
		ID: "id-of-west", SyncMode: "Push", APIEndpoint: "https://west",
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "west"},
	}
	if diff := cmp.Diff(want, c.Spec); diff != "" || !slices.Contains(c.Finalizers, model.FinalizerCluster) {
		t.Errorf("the Cluster has finalizers %v, and (-want +got)\n%s", c.Finalizers, diff)
	}
}

// A join that is refused at any write names the object, writes nothing after it, and ends in the same place when it is run again.
func TestJoinFails(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "it", errors.New("no"))
	for i, want := range []string{
		"create namespace fairlead-member: ", "create ClusterRole fairlead-member: ", "create ClusterRole fairlead-member-common: ",
		"create ServiceAccount fairlead-member/" + account + ": ", "create Role fairlead-member/" + account + ": ",
		"create RoleBinding fairlead-member/" + account + ": ", "create ClusterRoleBinding fairlead-member-" + account + ": ",
		"request a token from the cluster: ",
		"create namespace karmada-cluster on the hub: ", "create namespace karmada-es-west on the hub: ",
		"write Secret karmada-cluster/west on the hub: ", "write Cluster west on the hub: ",
	} {
		all := append(slices.Clone(memberWrites), hubWrites...)
		t.Run(all[i], func(t *testing.T) {
			hub, member := adoptiontest.NewAPI(t, nil), newMember(t)
			refuse := adoptiontest.Refuse(all[i], refused)
			hub.On, member.On = refuse, refuse
			if err := joinAsWest(t, hub, member); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(all[:i], append(slices.Clone(member.Writes), hub.Writes...)); i > 0 && diff != "" {
				t.Errorf("written (-want +got)\n%s", diff)
			}
			hub.On, member.On = nil, nil
			if err := joinAsWest(t, hub, member); err != nil {
				t.Fatal(err)
			}
			isJoined(t, hub, member)
		})
	}
}

// To join again gets a new token and the roles of this version, and keeps what users and controllers have written.
func TestJoinAgain(t *testing.T) {
	hub, member := adoptiontest.NewAPI(t, nil), newMember(t)
	if err := joinAsWest(t, hub, member); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{memberWrites, hubWrites}, [][]string{member.Writes, hub.Writes}); diff != "" {
		t.Errorf("the first time, written (-want +got)\n%s", diff)
	}
	secret := read(t, hub, "karmada-cluster/west", &corev1.Secret{})
	secret.Data["token"] = []byte("former")
	c := read(t, hub, "west", &clusterv1alpha1.Cluster{})
	c.UID, c.Labels, c.Spec.APIEndpoint = "first", map[string]string{"region": "eu"}, "https://former.example.com"
	c.Finalizers = append(c.Finalizers, "example.com/inventory")
	aggregated := read(t, member, model.MemberRole, &rbacv1.ClusterRole{})
	aggregated.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}}
	common := read(t, member, model.MemberRole+"-common", &rbacv1.ClusterRole{})
	common.Rules = nil
	for _, err := range []error{hub.Update(t.Context(), secret), hub.Update(t.Context(), c), member.Update(t.Context(), aggregated), member.Update(t.Context(), common)} {
		if err != nil {
			t.Fatal(err)
		}
	}

	if err := joinAsWest(t, hub, member); err != nil {
		t.Fatal(err)
	}
	isJoined(t, hub, member)
	if now := read(t, hub, "west", &clusterv1alpha1.Cluster{}); now.Labels["region"] != "eu" || now.UID != "first" || len(now.Finalizers) != 2 {
		t.Errorf("the Cluster has labels %v, finalizers %v", now.Labels, now.Finalizers)
	}
	if now := read(t, member, model.MemberRole, &rbacv1.ClusterRole{}); len(now.Rules) != 1 {
		t.Errorf("the rules that the cluster has aggregated are overwritten: %v", now.Rules)
	}
	if now := read(t, member, model.MemberRole+"-common", &rbacv1.ClusterRole{}); len(now.Rules) == 0 {
		t.Error("the role of an earlier version is not updated")
	}
}

// A join that cannot succeed writes nothing, neither on the hub nor in the cluster.
func TestJoinRefused(t *testing.T) {
	cluster := func(name, id string) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{ID: id, APIEndpoint: "https://x"}}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "", errors.New("no"))
	for name, c := range map[string]struct {
		have            []client.Object
		onHub, inMember error
		want            string
	}{
		"the cluster has joined under another name": {have: []client.Object{cluster("east", "id-of-west")}, want: "this cluster has joined as east already: `fairlead unjoin east` first"},
		"another cluster has the name":              {have: []client.Object{cluster("east", "id-of-east"), cluster("west", "id-of-another")}, want: "another cluster has joined as west: choose another name"},
		"the hub may not be read":                   {onHub: forbidden, want: "list the clusters that have joined: "},
		"the cluster may not be read":               {inMember: forbidden, want: "get the ID of the cluster: "},
	} {
		t.Run(name, func(t *testing.T) {
			hub, member := adoptiontest.NewAPI(t, nil, c.have...), newMember(t)
			hub.OnList = func(string, string) error { return c.onHub }
			member.On = adoptiontest.Refuse("get Namespace kube-system", c.inMember)
			if err := joinAsWest(t, hub, member); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if written := append(hub.Writes, member.Writes...); len(written) > 0 {
				t.Errorf("written: %v", written)
			}
		})
	}
	t.Run("a name that no namespace can have", func(t *testing.T) {
		hub := adoptiontest.NewAPI(t, nil)
		err := Join(t.Context(), hub, "hub", "West", &rest.Config{Host: "https://west"})
		if err == nil || !strings.HasPrefix(err.Error(), `"West" cannot be the name of a cluster`) || len(hub.Writes) > 0 {
			t.Errorf("got %v, and written: %v", err, hub.Writes)
		}
	})
}

// A cluster joins while a namespace of its earlier membership is still being deleted.
func TestEnsureNamespace(t *testing.T) {
	named := func() *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-west"}}
	}
	existing := named()
	existing.UID = "former"
	deleting := existing.DeepCopy()
	deleting.Finalizers, deleting.DeletionTimestamp = []string{"example.com/kept"}, &metav1.Time{Time: issued}
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "karmada-es-west", errors.New("no"))
	// removedAt has the former one go before a request, counted from 1.
	removedAt := func(at int) func(*testing.T, *adoptiontest.API, int, func()) error {
		return func(t *testing.T, hub *adoptiontest.API, n int, _ func()) error {
			if n == at {
				remove(t, hub, named())
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		have *corev1.Namespace
		// meanwhile is called before each request, with their number.
		meanwhile func(t *testing.T, hub *adoptiontest.API, n int, interrupt func()) error
		created   bool
		want      string
	}{
		"there is none": {created: true},
		"there is one":  {have: existing},
		"creation is refused": {
			meanwhile: func(*testing.T, *adoptiontest.API, int, func()) error { return refused }, want: "forbidden",
		},
		"the existing one cannot be read": {have: existing, meanwhile: func(_ *testing.T, _ *adoptiontest.API, n int, _ func()) error {
			if n == 2 {
				return refused
			}
			return nil
		}, want: "forbidden"},
		"the former one goes while it is waited for": {have: deleting, meanwhile: removedAt(3), created: true},
		"the former one goes before it is read":      {have: deleting, meanwhile: removedAt(2), created: true},
		"the former one stays": {have: deleting, meanwhile: func(_ *testing.T, _ *adoptiontest.API, n int, interrupt func()) error {
			if n == 3 {
				interrupt()
				return context.Canceled
			}
			return nil
		}, want: "the namespace is still being deleted: see its status for what is left, and run the command again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := adoptiontest.NewAPI(t, nil)
			if c.have != nil {
				hub = adoptiontest.NewAPI(t, nil, c.have.DeepCopy())
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			requests := 0
			hub.On = func(string, client.Object) error {
				if requests++; c.meanwhile != nil {
					return c.meanwhile(t, hub, requests, cancel)
				}
				return nil
			}
			err := ensureNamespace(ctx, hub, named())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			hub.On = nil
			if err == nil {
				if now := read(t, hub, "karmada-es-west", &corev1.Namespace{}); (now.UID != "former") != c.created || now.DeletionTimestamp != nil {
					t.Errorf("namespace %s, deleted %v", now.UID, now.DeletionTimestamp)
				}
			}
		})
	}
}

// The hub has no account in itself, and would propagate its templates to where they are.
func TestJoinOfTheHubItself(t *testing.T) {
	hub, member := adoptiontest.NewAPI(t, nil), newMember(t)
	err := join(t.Context(), hub, member, "id-of-west", "west", &rest.Config{Host: "https://west"})
	if err == nil || !strings.HasPrefix(err.Error(), "this cluster is the hub itself (namespace kube-system of both has UID id-of-west)") {
		t.Errorf("got %v", err)
	}
	if writes := append(hub.Writes, member.Writes...); len(writes) > 0 {
		t.Errorf("wrote %v", writes)
	}
}
