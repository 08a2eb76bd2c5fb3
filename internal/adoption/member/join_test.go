package member

import (
	"context"
	"errors"
	"net/http"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

var account = accountName("hub")

// newMember is a cluster that has not joined.
func newMember(t *testing.T) *adoptiontest.APIServer {
	t.Helper()
	return adoptiontest.NewAPIServer(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "id-of-west"}})
}

// join has a cluster join as west.
func join(t *testing.T, hub, member *adoptiontest.APIServer) {
	t.Helper()
	if err := Join(t.Context(), hub.Client(t), "hub", "west", member.Config()); err != nil {
		t.Fatal(err)
	}
	hub.Requests(true)
	member.Requests(true)
}

func read[T client.Object](t *testing.T, s *adoptiontest.APIServer, key string, object T) T {
	t.Helper()
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	if err := s.Client(t).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

var (
	hubOfJoined    = []string{"clusters/west", "namespaces/karmada-cluster", "namespaces/karmada-es-west", "secrets/karmada-cluster/west"}
	memberOfJoined = []string{
		"clusterrolebindings/fairlead-member-" + account, "clusterroles/fairlead-member", "clusterroles/fairlead-member-common",
		"namespaces/fairlead-member", "namespaces/kube-system", "rolebindings/fairlead-member/" + account, "roles/fairlead-member/" + account,
		"serviceaccounts/fairlead-member/" + account,
	}
)

func isJoined(t *testing.T, hub, member *adoptiontest.APIServer) {
	t.Helper()
	if diff := cmp.Diff(hubOfJoined, hub.Keys()); diff != "" {
		t.Errorf("the hub has (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(memberOfJoined, member.Keys()); diff != "" {
		t.Errorf("the cluster has (-want +got)\n%s", diff)
	}
	secret := read(t, hub, "karmada-cluster/west", &corev1.Secret{})
	expires := adoptiontest.TokensFrom.Add(TokenLifetime).Format(time.RFC3339)
	if !strings.HasPrefix(string(secret.Data["token"]), "token-") || string(secret.Data["caBundle"]) != string(member.Authority()) ||
		secret.Annotations[model.AnnotationAccount] != account || secret.Annotations[model.AnnotationExpires] != expires {
		t.Errorf("the Secret has %v, %v", secret.Annotations, secret.Data)
	}
	c := read(t, hub, "west", &clusterv1alpha1.Cluster{})
	want := clusterv1alpha1.ClusterSpec{
		ID: "id-of-west", SyncMode: "Push", APIEndpoint: member.URL,
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "west"},
	}
	if diff := cmp.Diff(want, c.Spec); diff != "" || !slices.Contains(c.Finalizers, model.FinalizerCluster) {
		t.Errorf("the Cluster has finalizers %v, and (-want +got)\n%s", c.Finalizers, diff)
	}
}

// Killed at any write, on the hub or in the cluster, a join ends in the same place when it is run again. The token that the hub can
// use comes after all that the token is for, and the Cluster, with which the operator begins, comes last.
func TestJoinInterruptedAtEveryWrite(t *testing.T) {
	const writes = 12
	for kill := range writes + 1 {
		hub, member := adoptiontest.NewAPIServer(t), newMember(t)
		var done []string
		fail := func(r *http.Request) error {
			if r.Method == http.MethodGet {
				return nil
			}
			if len(done) == kill {
				return errors.New("killed")
			}
			done = append(done, r.Method+" "+r.URL.Path)
			return nil
		}
		hub.Fail, member.Fail = fail, fail
		err := Join(t.Context(), hub.Client(t), "hub", "west", member.Config())
		if kill == writes {
			if err != nil || len(done) != writes || !strings.HasSuffix(done[writes-1], "/clusters") || !strings.HasSuffix(done[writes-2], "/secrets") {
				t.Errorf("undisturbed: %v, and %d writes: %v", err, len(done), done)
			}
		} else if err == nil {
			t.Errorf("killed after %d writes, and nothing is told", kill)
		}
		hub.Fail, member.Fail = nil, nil
		join(t, hub, member)
		isJoined(t, hub, member)
	}
}

// To join again gets a new token and the roles of this version, and keeps what users and controllers have written.
func TestJoinAgain(t *testing.T) {
	hub, member := adoptiontest.NewAPIServer(t), newMember(t)
	join(t, hub, member)
	token := read(t, hub, "karmada-cluster/west", &corev1.Secret{}).Data["token"]
	c := read(t, hub, "west", &clusterv1alpha1.Cluster{})
	c.Labels, c.Spec.APIEndpoint = map[string]string{"region": "eu"}, "https://former.example.com"
	c.Finalizers = append(c.Finalizers, "example.com/inventory")
	hub.Put(t, c)
	aggregated := read(t, member, model.MemberRole, &rbacv1.ClusterRole{})
	aggregated.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}}
	common := read(t, member, model.MemberRole+"-common", &rbacv1.ClusterRole{})
	common.Rules = nil
	member.Put(t, aggregated, common)

	join(t, hub, member)
	isJoined(t, hub, member)
	if now := read(t, hub, "karmada-cluster/west", &corev1.Secret{}).Data["token"]; string(now) == string(token) {
		t.Errorf("the token is still %s", now)
	}
	if now := read(t, hub, "west", &clusterv1alpha1.Cluster{}); now.Labels["region"] != "eu" || now.UID != c.UID || len(now.Finalizers) != 2 {
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
		as              string
		have            *clusterv1alpha1.Cluster
		onHub, inMember error
		want            string
	}{
		"the cluster has joined under another name": {"west", cluster("east", "id-of-west"), nil, nil, "this cluster has joined as east already: `fairlead unjoin east` first"},
		"another cluster has the name":              {"west", cluster("west", "id-of-another"), nil, nil, "another cluster has joined as west: choose another name"},
		"a name that no namespace can have":         {"West", nil, nil, nil, `"West" cannot be the name of a cluster`},
		"the hub may not be read":                   {"west", nil, forbidden, nil, "list the clusters that have joined: "},
		"the cluster may not be read":               {"west", nil, nil, forbidden, "get the ID of the cluster: "},
	} {
		t.Run(name, func(t *testing.T) {
			hub, member := adoptiontest.NewAPIServer(t), newMember(t)
			if c.have != nil {
				hub.Put(t, c.have)
			}
			failing := func(err error, path string) func(*http.Request) error {
				return func(r *http.Request) error {
					if strings.HasSuffix(r.URL.Path, path) {
						return err
					}
					return nil
				}
			}
			hub.Fail, member.Fail = failing(c.onHub, "/clusters"), failing(c.inMember, "/kube-system")
			err := Join(t.Context(), hub.Client(t), "hub", c.as, member.Config())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if written := append(hub.Requests(false), member.Requests(false)...); len(written) > 0 {
				t.Errorf("written: %v", written)
			}
		})
	}
}

// A cluster joins while a namespace of its earlier membership is still being deleted.
func TestEnsureNamespace(t *testing.T) {
	deleting := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "karmada-es-west", UID: "former", Finalizers: []string{"kubernetes"}, DeletionTimestamp: &metav1.Time{Time: adoptiontest.TokensFrom},
	}}
	existing := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-west", UID: "former"}}
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "karmada-es-west", errors.New("no"))
	for name, c := range map[string]struct {
		have *corev1.Namespace
		// meanwhile is called before each request, with their number.
		meanwhile func(s *adoptiontest.APIServer, n int, interrupt func() error) error
		created   bool
		want      string
	}{
		"there is none":       {nil, nil, true, ""},
		"there is one":        {existing, nil, false, ""},
		"creation is refused": {nil, func(*adoptiontest.APIServer, int, func() error) error { return refused }, false, "forbidden"},
		"the former one goes while it is waited for": {deleting, func(s *adoptiontest.APIServer, n int, _ func() error) error {
			if n == 3 {
				s.Remove("namespaces/karmada-es-west")
			}
			return nil
		}, true, ""},
		"the former one goes before it is read": {deleting, func(s *adoptiontest.APIServer, n int, _ func() error) error {
			if n == 2 {
				s.Remove("namespaces/karmada-es-west")
			}
			return nil
		}, true, ""},
		"the former one stays": {deleting, func(_ *adoptiontest.APIServer, n int, interrupt func() error) error {
			if n == 3 {
				return interrupt()
			}
			return nil
		}, false, "the namespace is still being deleted: see its status for what is left, and run the command again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := adoptiontest.NewAPIServer(t)
			if c.have != nil {
				s.Put(t, c.have)
			}
			hub := s.Client(t)
			// The first request of a kind is preceded by discovery.
			if err := hub.List(t.Context(), &corev1.NamespaceList{}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			requests := 0
			s.Fail = func(r *http.Request) error {
				if requests++; c.meanwhile != nil {
					return c.meanwhile(s, requests, func() error {
						cancel()
						return adoptiontest.UntilClosed(r)
					})
				}
				return nil
			}
			err := ensureNamespace(ctx, hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-west"}})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			s.Fail = nil
			if err == nil {
				if now := read(t, s, "karmada-es-west", &corev1.Namespace{}); (now.UID != "former") != c.created || now.DeletionTimestamp != nil {
					t.Errorf("namespace %s, deleted %v", now.UID, now.DeletionTimestamp)
				}
			}
		})
	}
}
