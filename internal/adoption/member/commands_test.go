package member

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

var configMaps = &meta.RESTMapping{
	Resource:         corev1.SchemeGroupVersion.WithResource("configmaps"),
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Scope: meta.RESTScopeNamespace,
}

func TestListForbidden(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"by RBAC": {
			apierrors.NewForbidden(resource, "", errors.New(`User "hub" cannot list resource "configmaps"`)),
			`add the rule {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, update, patch, delete]} to a ClusterRole of the cluster with the label fairlead.dev/aggregate-to-member: "true"`,
		},
		"by a webhook": {apierrors.NewForbidden(resource, "", errors.New("not on Fridays")), "not on Fridays"},
	} {
		t.Run(name, func(t *testing.T) {
			west := adoptiontest.NewAPI(t, nil)
			west.OnList = func(kind, namespace string) error {
				if kind != "ConfigMap" || namespace != "shop" {
					t.Errorf("listed: %s in %s", kind, namespace)
				}
				return c.err
			}
			_, err := (&Client{Name: "west", API: west}).List(t.Context(), configMaps, "shop", labels.Everything())
			if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "list configmaps in cluster west: ") || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The objects that pods require are read once each, and those that do not exist are not required to.
func TestDependencies(t *testing.T) {
	object := func(kind, name string) *unstructured.Unstructured {
		o := adoptiontest.Object(t, kind+" v1")
		o.SetName(name)
		return o
	}
	workload := adoptiontest.Object(t, `Deployment apps/v1
spec: {template: {spec: {serviceAccountName: cart, containers: [{name: cart, envFrom: [{secretRef: {name: key}}, {configMapRef: {name: settings}}, {configMapRef: {name: missing}}]}]}}}`)
	west := adoptiontest.NewAPI(t, nil, object("ServiceAccount", "cart"), object("Secret", "key"), object("ConfigMap", "settings"), object("ConfigMap", "other"))
	var gets atomic.Int32
	west.On = func(string, client.Object) error {
		gets.Add(1)
		return nil
	}
	m := &Client{Name: "west", API: west}
	found, err := m.Dependencies(t.Context(), []*unstructured.Unstructured{workload, workload.DeepCopy()})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range found {
		names = append(names, o.GetKind()+" "+model.NameOf(o))
	}
	if diff := cmp.Diff([]string{"ConfigMap shop/settings", "Secret shop/key", "ServiceAccount shop/cart"}, names); diff != "" {
		t.Error(diff)
	}
	if n := gets.Load(); n != 4 {
		t.Errorf("%d requests", n)
	}
	west.On = adoptiontest.Refuse("get Secret key", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "key", errors.New("no")))
	if _, err := m.Dependencies(t.Context(), []*unstructured.Unstructured{workload}); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "get Secret shop/key in cluster west: ") {
		t.Errorf("got %v", err)
	}
}

func TestConnectByName(t *testing.T) {
	o := newOperator(t, nil)
	m, err := ConnectByName(t.Context(), o.client, "west")
	if err != nil {
		t.Fatal(err)
	}
	m.Stop()
	if _, err := ConnectByName(t.Context(), o.client, "east"); err == nil || err.Error() != "no cluster east has joined the hub: `fairlead clusters` lists those that have" {
		t.Errorf("one that has not joined: %v", err)
	}
	o.server.respond(http.StatusUnauthorized)
	if _, err := ConnectByName(t.Context(), o.client, "west"); !errors.Is(err, errUnauthorized) || !strings.HasPrefix(err.Error(), "cluster west cannot be reached at "+o.server.URL+": ") {
		t.Errorf("one that refuses the token: %v", err)
	}
	o.hub.On = adoptiontest.Refuse("get Cluster west", apierrors.NewInternalError(errors.New("no leader")))
	if _, err := ConnectByName(t.Context(), o.client, "west"); err == nil || !strings.HasPrefix(err.Error(), "get Cluster west: ") {
		t.Errorf("a hub that fails: %v", err)
	}
}

// oddCluster answers with other objects than those that it is asked for.
type oddCluster struct {
	client.Client
	answer *unstructured.Unstructured
}

func (c oddCluster) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.answer.DeepCopyInto(into.(*unstructured.Unstructured))
	return nil
}

func (c oddCluster) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{*c.answer}
	return nil
}

// What a command reads of a cluster, and writes to the hub with the rights of its user, is what it has asked for.
func TestAnswerThatWasNotAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		// listed holds for an object that a list may have.
		got, listed bool
	}{
		"asked for":            {func(*unstructured.Unstructured) {}, true, true},
		"of another name":      {func(o *unstructured.Unstructured) { o.SetName("other") }, false, true},
		"of another namespace": {func(o *unstructured.Unstructured) { o.SetNamespace("kube-system") }, false, false},
		"of no namespace":      {func(o *unstructured.Unstructured) { o.SetNamespace("") }, false, false},
		"of another kind":      {func(o *unstructured.Unstructured) { o.SetKind("Secret") }, false, false},
		"of another group": {func(o *unstructured.Unstructured) {
			o.SetAPIVersion("rbac.authorization.k8s.io/v1")
			o.SetKind("ClusterRoleBinding")
			o.SetNamespace("")
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := adoptiontest.Object(t, "ConfigMap v1")
			answer.SetName("settings")
			c.change(answer)
			m := &Client{Name: "west", API: oddCluster{answer: answer}}
			if _, err := m.GetNamed(t.Context(), configMaps, "shop", "settings"); (err == nil) != c.got {
				t.Errorf("get: %v", err)
			}
			if _, err := m.List(t.Context(), configMaps, "shop", labels.Everything()); (err == nil) != c.listed {
				t.Errorf("list: %v", err)
			} else if err != nil && !strings.Contains(err.Error(), "list configmaps in cluster west: the cluster answers with "+answer.GetKind()) {
				t.Errorf("list: %v", err)
			}
		})
	}
}
