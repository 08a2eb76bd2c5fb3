package member

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

var configMaps = &meta.RESTMapping{
	Resource:         corev1.SchemeGroupVersion.WithResource("configmaps"),
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Scope: meta.RESTScopeNamespace,
}

// A list has the objects of all pages, and of no other namespace or label.
func TestListPages(t *testing.T) {
	s := adoptiontest.NewAPIServer(t)
	for i := range pageSize + 1 {
		s.Put(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("c%04d", i), Labels: map[string]string{"app": "cart"}}})
	}
	s.Put(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "pay", Name: "other", Labels: map[string]string{"app": "cart"}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "unlabelled"}})
	m := &Client{Name: "west", API: s.Client(t)}
	all, err := m.List(t.Context(), configMaps, "shop", labels.SelectorFromSet(labels.Set{"app": "cart"}))
	if err != nil || len(all) != pageSize+1 || all[0].GetName() != "c0000" || all[pageSize].GetName() != fmt.Sprintf("c%04d", pageSize) {
		t.Errorf("%d objects, %v", len(all), err)
	}
	if n := len(s.Requests(true)); n != 2 {
		t.Errorf("%d requests", n)
	}
	s.Fail = func(r *http.Request) error {
		if r.URL.Query().Get("continue") != "" {
			return apierrors.NewResourceExpired("the continue token has expired")
		}
		return nil
	}
	if all, err := m.List(t.Context(), configMaps, "shop", labels.Everything()); all != nil || err == nil || !strings.HasPrefix(err.Error(), "list configmaps in cluster west: ") {
		t.Errorf("half a list of %d objects, %v", len(all), err)
	}
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
			s := adoptiontest.NewAPIServer(t)
			s.Fail = failAt(http.MethodGet, "/configmaps", c.err)
			_, err := (&Client{Name: "west", API: s.Client(t)}).List(t.Context(), configMaps, "shop", labels.Everything())
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
	s := adoptiontest.NewAPIServer(t, object("ServiceAccount", "cart"), object("Secret", "key"), object("ConfigMap", "settings"), object("ConfigMap", "other"))
	m := &Client{Name: "west", API: s.Client(t)}
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
	if n := len(s.Requests(true)); n != 4 {
		t.Errorf("%d requests", n)
	}
	s.Fail = failAt(http.MethodGet, "/secrets/key", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "key", errors.New("no")))
	if _, err := m.Dependencies(t.Context(), []*unstructured.Unstructured{workload}); !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "get Secret shop/key in cluster west: ") {
		t.Errorf("got %v", err)
	}
}

func TestConnectByName(t *testing.T) {
	o := newOperator(t)
	m, err := ConnectByName(t.Context(), o.client, "west")
	if err != nil {
		t.Fatal(err)
	}
	m.Stop()
	if _, err := ConnectByName(t.Context(), o.client, "east"); err == nil || err.Error() != "no cluster east has joined the hub: `fairlead clusters` lists those that have" {
		t.Errorf("one that has not joined: %v", err)
	}
	o.member.Fail = failAt(http.MethodGet, "/version", apierrors.NewUnauthorized("expired"))
	if _, err := ConnectByName(t.Context(), o.client, "west"); !errors.Is(err, errUnauthorized) || !strings.HasPrefix(err.Error(), "cluster west cannot be reached at "+o.member.URL+": ") {
		t.Errorf("one that refuses the token: %v", err)
	}
	o.hub.Fail = failAt(http.MethodGet, "/clusters/west", apierrors.NewInternalError(errors.New("no leader")))
	if _, err := ConnectByName(t.Context(), o.client, "west"); err == nil || !strings.HasPrefix(err.Error(), "get Cluster west: ") {
		t.Errorf("a hub that fails: %v", err)
	}
}
