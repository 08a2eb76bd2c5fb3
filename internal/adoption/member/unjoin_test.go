package member

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

var (
	rolesLeft   = "ClusterRole fairlead-member and ClusterRoleBinding fairlead-member-" + account + ", which are unused"
	accountLeft = "ServiceAccount fairlead-member/" + account + " and ClusterRole fairlead-member"
)

// hubOfWest is a hub that a cluster has joined as west, and that has nothing to release there.
func hubOfWest(t *testing.T, endpoint string) *adoptiontest.API {
	t.Helper()
	cluster, secret, namespace := joinedAsWest(endpoint, nil)
	cluster.Finalizers = nil
	return adoptiontest.NewAPI(t, nil, cluster, secret, namespace)
}

// leftovers are the objects that a hub has of a cluster.
func leftovers(t *testing.T, hub *adoptiontest.API) []string {
	t.Helper()
	var all []string
	cluster, secret, namespace := joinedAsWest("", nil)
	for _, object := range []client.Object{cluster, secret, namespace} {
		if hub.Exists(t, object) {
			all = append(all, describe(hub, object))
		}
	}
	return all
}

// Nothing is left on the hub, and the command names all that it could not delete in the cluster.
func TestUnjoin(t *testing.T) {
	const silent = "http://127.0.0.1:1" // a port that is given to no listener
	cluster, secret, namespace := joinedAsWest(silent, nil)
	for name, c := range map[string]struct {
		options UnjoinOptions
		removed []client.Object
		// meanwhile is removed by another client before the Cluster is annotated.
		meanwhile client.Object
		left      string
	}{
		"abandoned":                                                      {options: UnjoinOptions{Abandon: true}, left: accountLeft},
		"from a cluster that does not respond":                           {left: "ServiceAccount fairlead-member/" + account + ", " + rolesLeft},
		"without its Secret":                                             {removed: []client.Object{secret}, left: accountLeft},
		"while another client deletes the Cluster":                       {options: UnjoinOptions{Abandon: true}, meanwhile: cluster, left: accountLeft},
		"again, after it was interrupted when the Cluster was gone":      {removed: []client.Object{cluster}, left: accountLeft},
		"again, after it was interrupted when its namespace was deleted": {removed: []client.Object{cluster, namespace}, left: accountLeft},
	} {
		t.Run(name, func(t *testing.T) {
			hub := hubOfWest(t, silent)
			for _, object := range c.removed {
				remove(t, hub, object.DeepCopyObject().(client.Object))
			}
			hub.On = func(verb string, _ client.Object) error {
				if verb == "patch" && c.meanwhile != nil {
					remove(t, hub, c.meanwhile.DeepCopyObject().(client.Object))
				}
				return nil
			}
			left, err := Unjoin(t.Context(), hub, "hub", "west", c.options)
			if err != nil || left != c.left {
				t.Errorf("left: %s\nwant: %s\n%v", left, c.left, err)
			}
			if all := leftovers(t, hub); len(all) > 0 {
				t.Errorf("the hub has %v", all)
			}
		})
	}
}

// With its own token a hub can delete its account, and names the rest.
func TestDeleteAccount(t *testing.T) {
	serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: model.MemberNamespace, Name: account}}
	for name, c := range map[string]struct {
		have []client.Object
		err  error
		left string
	}{
		"deleted":         {have: []client.Object{serviceAccount}, left: rolesLeft},
		"deleted already": {left: rolesLeft},
		"token refused":   {have: []client.Object{serviceAccount}, err: apierrors.NewUnauthorized("expired"), left: "ServiceAccount fairlead-member/" + account + ", " + rolesLeft},
	} {
		t.Run(name, func(t *testing.T) {
			member := adoptiontest.NewAPI(t, nil, c.have...)
			member.On = adoptiontest.Refuse("delete ServiceAccount "+account, c.err)
			if left := deleteAccount(t.Context(), member, account); left != c.left {
				t.Errorf("left: %s\nwant: %s", left, c.left)
			}
			if member.Exists(t, serviceAccount.DeepCopy()) != (c.err != nil) {
				t.Error("the account is not as the command says")
			}
		})
	}
}

// An administrator deletes all that a hub has in a cluster, except for the roles while another hub uses them. After a failure the
// same is done when it is asked for again.
func TestDeleteAccountAndRoles(t *testing.T) {
	otherHub := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "fairlead-member-hub-other", Labels: map[string]string{model.LabelMemberBinding: "true"}}}
	ofUser := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "view"}}
	own := []string{
		"delete ServiceAccount " + account, "delete Role " + account, "delete RoleBinding " + account, "delete ClusterRoleBinding fairlead-member-" + account,
	}
	all := append(slices.Clone(own), "delete ClusterRole fairlead-member", "delete ClusterRole fairlead-member-common", "delete Namespace fairlead-member")
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "it", errors.New("no"))
	for name, c := range map[string]struct {
		others      []client.Object
		refuse      string
		mayNotList  bool
		want        string
		writes      []string
		writesAgain []string
	}{
		"the only hub":                     {others: []client.Object{ofUser}, writes: all},
		"while another hub uses the roles": {others: []client.Object{otherHub}, writes: own},
		"the account may not be deleted":   {refuse: all[0], want: "delete ServiceAccount fairlead-member/" + account + ": ", writesAgain: all},
		"the binding may not be deleted":   {refuse: all[3], want: "delete ClusterRoleBinding fairlead-member-" + account + ": ", writes: all[:3], writesAgain: all[3:]},
		"other bindings may not be listed": {mayNotList: true, want: "x \"it\" is forbidden", writes: own, writesAgain: all[4:]},
		"a role may not be deleted":        {refuse: all[5], want: "delete ClusterRole fairlead-member-common: ", writes: all[:5], writesAgain: all[5:]},
		"the namespace may not be deleted": {refuse: all[6], want: "delete Namespace fairlead-member: ", writes: all[:6], writesAgain: all[6:]},
	} {
		t.Run(name, func(t *testing.T) {
			member := newMember(t)
			for _, object := range c.others {
				if err := member.Create(t.Context(), object.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			if err := createRBAC(t.Context(), member, account); err != nil {
				t.Fatal(err)
			}
			member.Writes = nil
			member.On = adoptiontest.Refuse(c.refuse, refused)
			if c.mayNotList {
				member.OnList = func(string, string) error { return refused }
			}
			err := deleteAccountAndRoles(t.Context(), member, account)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(c.writes, member.Writes); diff != "" {
				t.Errorf("written (-want +got)\n%s", diff)
			}
			member.Writes, member.On, member.OnList = nil, nil, nil
			if err := deleteAccountAndRoles(t.Context(), member, account); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.writesAgain, member.Writes); diff != "" {
				t.Errorf("again, written (-want +got)\n%s", diff)
			}
		})
	}
}

// While anything fails, the Secret stays: with it the command can be run again, and the operator still reaches the cluster.
func TestUnjoinFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "west", errors.New("no"))
	const cluster, secret, namespace = "Cluster west", "Secret karmada-cluster/west", "Namespace karmada-es-west"
	for name, c := range map[string]struct {
		refuse string
		want   string
		left   []string
	}{
		"the Cluster may not be read":      {"get Cluster west", "get Cluster west: ", []string{cluster, secret, namespace}},
		"the Secret may not be read":       {"get Secret west", "get Secret karmada-cluster/west: ", []string{cluster, secret, namespace}},
		"the Cluster may not be annotated": {"patch Cluster west", "annotate Cluster west: ", []string{cluster, secret, namespace}},
		"the Cluster may not be deleted":   {"delete Cluster west", "delete Cluster west: ", []string{cluster, secret, namespace}},
		"its namespace may not be deleted": {"delete Namespace karmada-es-west", "delete namespace karmada-es-west: ", []string{secret, namespace}},
		"the Secret may not be deleted":    {"delete Secret west", "delete Secret karmada-cluster/west: ", []string{secret}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := hubOfWest(t, "https://west")
			hub.On = adoptiontest.Refuse(c.refuse, forbidden)
			if _, err := Unjoin(t.Context(), hub, "hub", "west", UnjoinOptions{Abandon: true}); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			hub.On = nil
			if diff := cmp.Diff(c.left, leftovers(t, hub)); diff != "" {
				t.Errorf("the hub has (-want +got)\n%s", diff)
			}
			if left, err := Unjoin(t.Context(), hub, "hub", "west", UnjoinOptions{Abandon: true}); err != nil || left != accountLeft {
				t.Errorf("again: %v, left: %s", err, left)
			}
			if all := leftovers(t, hub); len(all) > 0 {
				t.Errorf("again: the hub has %v", all)
			}
		})
	}
	t.Run("a cluster that has not joined", func(t *testing.T) {
		hub := hubOfWest(t, "https://west")
		_, err := Unjoin(t.Context(), hub, "hub", "east", UnjoinOptions{})
		if err == nil || err.Error() != "no cluster has joined as east: `fairlead clusters` shows those that have" || len(hub.Writes) > 0 {
			t.Errorf("got %v, and written: %v", err, hub.Writes)
		}
	})
	t.Run("an administrator who cannot connect", func(t *testing.T) {
		hub := hubOfWest(t, "https://west")
		config := &rest.Config{Host: "https://west", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("no certificate")}}
		_, err := Unjoin(t.Context(), hub, "hub", "west", UnjoinOptions{Member: config})
		if diff := cmp.Diff([]string{secret, namespace}, leftovers(t, hub)); err == nil || !strings.HasPrefix(err.Error(), "connect to the cluster: ") || diff != "" {
			t.Errorf("got %v, and the hub has (-want +got)\n%s", err, diff)
		}
	})
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
			hub := adoptiontest.NewAPI(t, nil, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west", Annotations: c.before, Finalizers: []string{model.FinalizerCluster}}})
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			cluster := read(t, hub, "west", &clusterv1alpha1.Cluster{})
			if err := deleteCluster(ctx, hub, cluster, UnjoinOptions{DeleteResources: c.how.DeleteResources, Abandon: c.how.Abandon, Progress: func(int) { interrupt() }}); err == nil {
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
		return []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: is, Reason: "R", Message: "connection refused", LastTransitionTime: metav1.Time{Time: issued}}}
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
			cluster, secret, namespace := joinedAsWest("https://west", nil)
			cluster.Status.Conditions = c.conditions
			hub := adoptiontest.NewAPI(t, nil, cluster, secret, namespace,
				work("karmada-es-west", "a"), work("karmada-es-west", "b"), work("karmada-es-east", "c"))
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var progress []int
			_, err := Unjoin(ctx, hub, "hub", "west", UnjoinOptions{Progress: func(left int) {
				if progress = append(progress, left); len(progress) == 2 {
					interrupt()
				}
			}})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if all := leftovers(t, hub); !slices.Equal(progress, []int{2, 2}) || len(all) != 3 {
				t.Errorf("progress %v, and the hub has %v", progress, all)
			}
		})
	}
}

// The interruption ends a request, and the answer before it counts.
func TestUnjoinInterruptedInARequest(t *testing.T) {
	cluster, secret, namespace := joinedAsWest("https://west", nil)
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: "a"}}
	hub := adoptiontest.NewAPI(t, nil, cluster, secret, namespace, work)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	lists := 0
	hub.OnList = func(kind, _ string) error {
		if kind != "Work" {
			return nil
		}
		if lists++; lists == 1 {
			return nil
		}
		interrupt()
		return ctx.Err()
	}
	const want = "1 objects not yet released by the operator: see whether the operator runs, and run the command again to continue waiting"
	if _, err := Unjoin(ctx, hub, "hub", "west", UnjoinOptions{}); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "context canceled") {
		t.Errorf("got %v", err)
	}
}

// A read that fails while the command waits is tried again: it says nothing about the Cluster.
func TestUnjoinWaitsThroughErrors(t *testing.T) {
	cluster, secret, namespace := joinedAsWest("https://west", nil)
	hub := adoptiontest.NewAPI(t, nil, cluster, secret, namespace)
	reads := 0
	hub.On = func(verb string, object client.Object) error {
		if _, ok := object.(*clusterv1alpha1.Cluster); !ok || verb != "get" {
			return nil
		}
		switch reads++; reads {
		case 2: // the first that waits
			return apierrors.NewInternalError(errors.New("etcd has no leader"))
		case 3: // the operator has released all objects
			remove(t, hub, cluster.DeepCopy())
		}
		return nil
	}
	if _, err := Unjoin(t.Context(), hub, "hub", "west", UnjoinOptions{Abandon: true}); err != nil || reads != 3 {
		t.Errorf("after %d reads: %v", reads, err)
	}
	if all := leftovers(t, hub); len(all) > 0 {
		t.Errorf("the hub has %v", all)
	}
}
