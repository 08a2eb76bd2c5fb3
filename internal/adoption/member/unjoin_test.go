package member

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// release does what the operator does with a Cluster that is being deleted and has no Works, before the Cluster is read again.
func release(hub *adoptiontest.APIServer) func(*http.Request) error {
	return func(r *http.Request) error {
		if c := hub.Object("clusters/west"); r.Method == http.MethodGet && c != nil && c.GetDeletionTimestamp() != nil {
			hub.Remove("clusters/west")
		}
		return nil
	}
}

// What a hub leaves in a cluster is what its access does not suffice to delete, and the command names all of it.
func TestUnjoin(t *testing.T) {
	rolesLeft := "ClusterRole fairlead-member and ClusterRoleBinding fairlead-member-" + account + ", which are unused"
	accountLeft := "ServiceAccount fairlead-member/" + account + " and ClusterRole fairlead-member"
	otherHub := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "fairlead-member-hub-other", Labels: map[string]string{model.LabelMemberBinding: "true"}}}
	without := func(keys ...string) []string {
		return slices.DeleteFunc(slices.Clone(memberOfJoined), func(key string) bool { return slices.Contains(keys, key) })
	}
	binding, serviceAccount := memberOfJoined[0], "serviceaccounts/fairlead-member/"+account
	for name, c := range map[string]struct {
		administrator bool
		options       UnjoinOptions
		prepare       func(t *testing.T, hub, member *adoptiontest.APIServer)
		left          string
		inMember      []string
	}{
		"with the token of the hub": {left: rolesLeft, inMember: without(serviceAccount)},
		"with the token of the hub, whose account is deleted already": {
			prepare: func(_ *testing.T, _, member *adoptiontest.APIServer) { member.Remove(serviceAccount) },
			left:    rolesLeft, inMember: without(serviceAccount),
		},
		"with the token of the hub, which is refused": {
			prepare: func(_ *testing.T, _, member *adoptiontest.APIServer) {
				member.Fail = func(*http.Request) error { return apierrors.NewUnauthorized("expired") }
			},
			left: "ServiceAccount fairlead-member/" + account + ", " + rolesLeft, inMember: memberOfJoined,
		},
		"as an administrator": {
			administrator: true,
			inMember:      []string{"namespaces/kube-system"},
		},
		"as an administrator, while another hub uses the roles": {
			administrator: true,
			prepare:       func(t *testing.T, _, member *adoptiontest.APIServer) { member.Put(t, otherHub) },
			inMember:      append([]string{"clusterrolebindings/fairlead-member-hub-other"}, without(binding, serviceAccount, "rolebindings/fairlead-member/"+account, "roles/fairlead-member/"+account)...),
		},
		"abandoned":                     {options: UnjoinOptions{Abandon: true}, left: accountLeft, inMember: memberOfJoined},
		"abandoned by an administrator": {administrator: true, options: UnjoinOptions{Abandon: true}, inMember: []string{"namespaces/kube-system"}},
		"without its Secret": {
			prepare: func(_ *testing.T, hub, _ *adoptiontest.APIServer) { hub.Remove("secrets/karmada-cluster/west") },
			left:    accountLeft, inMember: memberOfJoined,
		},
		"while another client deletes the Cluster": {
			prepare: func(_ *testing.T, hub, _ *adoptiontest.APIServer) {
				operator := hub.Fail
				hub.Fail = func(r *http.Request) error {
					if r.Method == http.MethodPatch {
						hub.Remove("clusters/west")
					}
					return operator(r)
				}
			},
			left: rolesLeft, inMember: without(serviceAccount),
		},
		"again, after it was interrupted when the Cluster was gone": {
			prepare: func(_ *testing.T, hub, _ *adoptiontest.APIServer) { hub.Remove("clusters/west") },
			left:    accountLeft, inMember: memberOfJoined,
		},
		"again, after it was interrupted when its namespace was deleted": {
			prepare: func(_ *testing.T, hub, _ *adoptiontest.APIServer) {
				hub.Remove("clusters/west")
				hub.Remove("namespaces/karmada-es-west")
			},
			left: accountLeft, inMember: memberOfJoined,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub, member := adoptiontest.NewAPIServer(t), newMember(t)
			join(t, hub, member)
			hub.Fail = release(hub)
			if c.prepare != nil {
				c.prepare(t, hub, member)
			}
			if c.administrator {
				c.options.Member = member.Config()
			}
			left, err := Unjoin(t.Context(), hub.Client(t), "hub", "west", c.options)
			if err != nil || left != c.left {
				t.Errorf("left: %s\nwant: %s\n%v", left, c.left, err)
			}
			if diff := cmp.Diff([]string{"namespaces/karmada-cluster"}, hub.Keys()); diff != "" {
				t.Errorf("the hub has (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.inMember, member.Keys()); diff != "" {
				t.Errorf("the cluster has (-want +got)\n%s", diff)
			}
		})
	}
}

// While anything fails, the Secret stays: with it the command can be run again, and the operator still reaches the cluster.
func TestUnjoinFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "west", errors.New("no"))
	for name, c := range map[string]struct {
		name          string
		method, path  string
		inMember      bool
		want          string
		clusterIsGone bool
	}{
		"a cluster that has not joined":    {name: "east", want: "no cluster has joined as east: `fairlead clusters` shows those that have"},
		"the Cluster may not be read":      {method: "GET", path: "/clusters/west", want: "get Cluster west: "},
		"the Secret may not be read":       {method: "GET", path: "/secrets/west", want: "get Secret karmada-cluster/west: "},
		"the Cluster may not be annotated": {method: "PATCH", path: "/clusters/west", want: "annotate Cluster west: "},
		"the Cluster may not be deleted":   {method: "DELETE", path: "/clusters/west", want: "delete Cluster west: "},
		"the binding may not be deleted":   {method: "DELETE", path: "/clusterrolebindings/" + "fairlead-member-" + account, inMember: true, want: "delete ClusterRoleBinding fairlead-member-" + account + ": ", clusterIsGone: true},
		"other bindings may not be listed": {method: "GET", path: "/clusterrolebindings", inMember: true, want: "forbidden", clusterIsGone: true},
		"a role may not be deleted":        {method: "DELETE", path: "/clusterroles/fairlead-member", inMember: true, want: "delete ClusterRole fairlead-member: ", clusterIsGone: true},
		"the Secret may not be deleted":    {method: "DELETE", path: "/secrets/west", want: "delete Secret karmada-cluster/west: ", clusterIsGone: true},
		"its namespace may not be deleted": {method: "DELETE", path: "/namespaces/karmada-es-west", want: "delete namespace karmada-es-west: ", clusterIsGone: true},
	} {
		t.Run(name, func(t *testing.T) {
			hub, member := adoptiontest.NewAPIServer(t), newMember(t)
			join(t, hub, member)
			operator := release(hub)
			failing := func(here bool) func(r *http.Request) error {
				return func(r *http.Request) error {
					if here && r.Method == c.method && strings.HasSuffix(r.URL.Path, c.path) {
						return forbidden
					}
					return nil
				}
			}
			fail := failing(!c.inMember)
			hub.Fail = func(r *http.Request) error {
				if err := fail(r); err != nil {
					return err
				}
				return operator(r)
			}
			member.Fail = failing(c.inMember)
			leaving := c.name
			if leaving == "" {
				leaving = "west"
			}
			_, err := Unjoin(t.Context(), hub.Client(t), "hub", leaving, UnjoinOptions{Member: member.Config()})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			keys := hub.Keys()
			if slices.Contains(keys, "clusters/west") == c.clusterIsGone || !slices.Contains(keys, "secrets/karmada-cluster/west") {
				t.Errorf("the hub has %v", keys)
			}
		})
	}
}

// What an earlier run asked for no longer holds when the command is run without it.
func TestUnjoinAnnotations(t *testing.T) {
	for name, c := range map[string]struct {
		before map[string]string
		how    UnjoinOptions
		want   map[string]string
	}{
		"orphan":                      {nil, UnjoinOptions{}, nil},
		"delete":                      {nil, UnjoinOptions{DeleteResources: true}, map[string]string{model.AnnotationDeleteResources: "true"}},
		"abandon":                     {map[string]string{"team": "blue"}, UnjoinOptions{Abandon: true}, map[string]string{model.AnnotationAbandon: "true", "team": "blue"}},
		"orphan after a delete":       {map[string]string{model.AnnotationDeleteResources: "true", "team": "blue"}, UnjoinOptions{}, map[string]string{"team": "blue"}},
		"delete after an abandonment": {map[string]string{model.AnnotationAbandon: "true"}, UnjoinOptions{DeleteResources: true}, map[string]string{model.AnnotationDeleteResources: "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := adoptiontest.NewAPIServer(t)
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west", Annotations: c.before, Finalizers: []string{model.FinalizerCluster}}}
			hub.Put(t, cluster)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			cluster = read(t, hub, "west", cluster)
			if err := deleteCluster(ctx, hub.Client(t), cluster, UnjoinOptions{DeleteResources: c.how.DeleteResources, Abandon: c.how.Abandon, Progress: func(int) { interrupt() }}); err == nil {
				t.Error("the Cluster is still there, and that is not told")
			}
			now := read(t, hub, "west", &clusterv1alpha1.Cluster{})
			if diff := cmp.Diff(c.want, now.Annotations); diff != "" || now.DeletionTimestamp == nil {
				t.Errorf("deleted %v, with (-want +got)\n%s", now.DeletionTimestamp, diff)
			}
		})
	}
}

// A command that is interrupted while it waits says how much is left, and whether the cluster or the operator holds it up.
func TestUnjoinWaits(t *testing.T) {
	work := func(namespace, name string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	ready := func(is metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: is, Reason: "R", Message: "connection refused", LastTransitionTime: metav1.Time{Time: adoptiontest.TokensFrom}}}
	}
	unreachable := "2 objects not yet released, and the cluster cannot be reached (connection refused): the cluster leaves when it can be reached again, or immediately and unchanged with --force"
	silent := "2 objects not yet released by the operator: see whether the operator runs, and run the command again to continue waiting"
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"the cluster cannot be reached":           {ready(metav1.ConditionFalse), unreachable},
		"the operator has lost sight of it":       {ready(metav1.ConditionUnknown), unreachable},
		"the cluster can be reached":              {ready(metav1.ConditionTrue), silent},
		"the operator has never seen the cluster": {nil, silent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := adoptiontest.NewAPIServer(t, work("karmada-es-west", "a"), work("karmada-es-west", "b"), work("karmada-es-east", "c"),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: model.SecretNamespace, Name: "west"}},
				&clusterv1alpha1.Cluster{
					ObjectMeta: metav1.ObjectMeta{Name: "west", Finalizers: []string{model.FinalizerCluster}},
					Status:     clusterv1alpha1.ClusterStatus{Conditions: c.conditions},
				})
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var progress []int
			_, err := Unjoin(ctx, hub.Client(t), "hub", "west", UnjoinOptions{Progress: func(left int) {
				if progress = append(progress, left); len(progress) == 2 {
					interrupt()
				}
			}})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff([]int{2, 2}, progress); diff != "" || !slices.Contains(hub.Keys(), "secrets/karmada-cluster/west") {
				t.Errorf("progress %v, and the hub has %v", progress, hub.Keys())
			}
		})
	}
}

// A read that fails while the command waits is tried again: it says nothing about the Cluster.
func TestUnjoinWaitsThroughErrors(t *testing.T) {
	hub, member := adoptiontest.NewAPIServer(t), newMember(t)
	join(t, hub, member)
	operator, reads := release(hub), 0
	hub.Fail = func(r *http.Request) error {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/clusters/west") {
			if reads++; reads == 2 { // the first that waits
				return apierrors.NewInternalError(errors.New("etcd has no leader"))
			}
		}
		return operator(r)
	}
	if _, err := Unjoin(t.Context(), hub.Client(t), "hub", "west", UnjoinOptions{Abandon: true}); err != nil || reads != 3 {
		t.Errorf("after %d reads: %v", reads, err)
	}
}
