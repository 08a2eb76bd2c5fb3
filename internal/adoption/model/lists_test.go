package model

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

func object(kind, version, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// boundBy is a binding of a template that a policy takes, and that other bindings require.
func boundBy(namespace, name string, policy PolicyKey, requiredBy ...client.ObjectKey) client.Object {
	b := NewBinding(client.ObjectKey{Namespace: namespace, Name: name})
	Claim(b, policy)
	for _, key := range requiredBy {
		b.Spec.RequiredBy = append(b.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: key.Namespace, Name: key.Name})
	}
	return b.Object
}

func indexedHub(t *testing.T, objects ...client.Object) *adoptiontest.API {
	return adoptiontest.NewAPI(t, func(b *fake.ClientBuilder) {
		for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
			b.WithIndex(kind, IndexPolicy, PolicyIndexValues).WithIndex(kind, IndexRequiredBy, RequiredByIndexValues).
				WithIndex(kind, IndexTemplate, TemplateIndexValues)
		}
	}, objects...)
}

func pathsOf(bindings []*Binding) string {
	var paths []string
	for _, b := range bindings {
		paths = append(paths, b.String())
	}
	slices.Sort(paths)
	return strings.Join(paths, ", ")
}

// What an index is written with is what it is asked for: in a namespace, in none, and for policies of one name in both.
func TestBindingsAreFoundByIndex(t *testing.T) {
	own, ofCluster := PolicyKey{Namespace: "shop", Name: "p"}, PolicyKey{Name: "p"}
	cart, role := client.ObjectKey{Namespace: "shop", Name: "cart-deployment"}, client.ObjectKey{Name: "admin-clusterrole"}
	hub := indexedHub(t,
		boundBy("shop", "cart-deployment", own),
		boundBy("shop", "pay-deployment", ofCluster),
		boundBy("bank", "pay-deployment", ofCluster),
		boundBy("", "admin-clusterrole", ofCluster),
		boundBy("shop", "settings-configmap", PolicyKey{}, cart, client.ObjectKey{Namespace: "shop", Name: "pay-deployment"}),
		boundBy("", "reader-clusterrole", PolicyKey{}, role),
		boundBy("bank", "settings-configmap", PolicyKey{}, client.ObjectKey{Namespace: "bank", Name: "cart-deployment"}),
	)
	for name, c := range map[string]struct {
		list func() ([]*Binding, error)
		want string
	}{
		"of a policy of a namespace": {func() ([]*Binding, error) { return ListClaimed(t.Context(), hub, own) }, "ResourceBinding shop/cart-deployment"},
		"of a policy of the cluster": {
			func() ([]*Binding, error) { return ListClaimed(t.Context(), hub, ofCluster) },
			"ClusterResourceBinding admin-clusterrole, ResourceBinding bank/pay-deployment, ResourceBinding shop/pay-deployment",
		},
		"of a policy that takes nothing": {func() ([]*Binding, error) {
			return ListClaimed(t.Context(), hub, PolicyKey{Namespace: "bank", Name: "p"})
		}, ""},
		"required in a namespace": {
			func() ([]*Binding, error) { return ListDependencies(t.Context(), hub, NewBinding(cart)) }, "ResourceBinding shop/settings-configmap",
		},
		"required by what is in no namespace": {
			func() ([]*Binding, error) { return ListDependencies(t.Context(), hub, NewBinding(role)) }, "ClusterResourceBinding reader-clusterrole",
		},
		"required by nothing": {func() ([]*Binding, error) {
			return ListDependencies(t.Context(), hub, NewBinding(client.ObjectKey{Namespace: "shop", Name: "till"}))
		}, ""},
		"of one namespace": {
			func() ([]*Binding, error) { return ListBindings(t.Context(), hub, "bank") }, "ResourceBinding bank/pay-deployment, ResourceBinding bank/settings-configmap",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := c.list()
			if got := pathsOf(found); got != c.want || err != nil {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

// The binding of a template is found whatever its name, in every version of its kind; of two, that with Fairlead's name.
func TestFindBinding(t *testing.T) {
	of := func(namespace, name, kind, apiVersion, template string) client.Object {
		b := NewBinding(client.ObjectKey{Namespace: namespace, Name: name})
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: template}
		return b.Object
	}
	const roles, routes = "rbac.authorization.k8s.io/v1", "networking.istio.io/v1"
	// One that a tenant has written for a template beyond the namespace, under the name that Fairlead would choose.
	node := TemplateKey{schema.FromAPIVersionAndKind(roles, "ClusterRole"), client.ObjectKey{Name: "system:node"}}
	foreign := NewBinding(client.ObjectKey{Namespace: "shop", Name: node.Binding().Name})
	foreign.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: roles, Kind: "ClusterRole", Name: "system:node"}
	both := TemplateKey{schema.FromAPIVersionAndKind(routes, "VirtualService"), client.ObjectKey{Namespace: "shop", Name: "both"}}
	hub := indexedHub(t,
		foreign.Object,
		of("shop", "cart-deployment", "Deployment", "apps/v1", "cart"),
		of("shop", "web-virtualservice", "VirtualService", routes, "web"),
		of("bank", "web-virtualservice", "VirtualService", routes, "other"),
		of("shop", "web-service", "Service", "serving.knative.dev/v1", "web"),
		of("", "system.node-clusterrole", "ClusterRole", roles, "system:node"),
		of("shop", "both-virtualservice", "VirtualService", routes, "both"),
		of("shop", both.Binding().Name, "VirtualService", routes, "both"),
	)
	for _, c := range []struct{ namespace, kind, apiVersion, template, want string }{
		{"shop", "Deployment", "apps/v1", "cart", "ResourceBinding shop/cart-deployment"},
		{"shop", "Deployment", "apps/v1beta1", "cart", "ResourceBinding shop/cart-deployment"},
		{"shop", "VirtualService", routes, "web", "ResourceBinding shop/web-virtualservice"},
		{"bank", "VirtualService", routes, "web", ""},
		{"shop", "Service", "v1", "web", ""},
		{"", "ClusterRole", roles, "system:node", "ClusterResourceBinding system.node-clusterrole"},
		{"", "ClusterRole", roles, "system.node", ""},
		{"shop", "VirtualService", routes, "both", "ResourceBinding shop/" + both.Binding().Name},
	} {
		key := TemplateKey{schema.FromAPIVersionAndKind(c.apiVersion, c.kind), client.ObjectKey{Namespace: c.namespace, Name: c.template}}
		b, err := FindBinding(t.Context(), hub, key)
		if got := pathsOf(slices.DeleteFunc([]*Binding{b}, func(b *Binding) bool { return b == nil })); got != c.want || err != nil {
			t.Errorf("%v: got %s, %v", key, got, err)
		}
		if b != nil && !slices.Contains(key.Bindings(), client.ObjectKeyFromObject(b.Object)) {
			t.Errorf("%s is none of %v", b, key.Bindings())
		}
	}
}

// A binding that is not there is nil, of the kind that its key says; any other error is not the same as none.
func TestGetBinding(t *testing.T) {
	hub := indexedHub(t, boundBy("shop", "cart-deployment", PolicyKey{}), boundBy("", "admin-clusterrole", PolicyKey{}))
	for key, want := range map[client.ObjectKey]string{
		{Namespace: "shop", Name: "cart-deployment"}: "ResourceBinding shop/cart-deployment",
		{Name: "admin-clusterrole"}:                  "ClusterResourceBinding admin-clusterrole",
		{Namespace: "bank", Name: "cart-deployment"}: "",
		{Name: "cart-deployment"}:                    "",
	} {
		b, err := GetBinding(t.Context(), hub, key)
		if err != nil || (b == nil) != (want == "") || b != nil && b.String() != want {
			t.Errorf("%s: %v, %v", key, b, err)
		}
	}
	hub.On = func(string, client.Object) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "resourcebindings"}, "cart-deployment", errors.New("no"))
	}
	if b, err := GetBinding(t.Context(), hub, client.ObjectKey{Namespace: "shop", Name: "cart-deployment"}); b != nil || !apierrors.IsForbidden(err) {
		t.Errorf("forbidden: %v, %v", b, err)
	}
}

func TestIsRequiredBy(t *testing.T) {
	others := map[string]bool{"shop/cart-deployment": true, "shop/pay-deployment": false, "admin-clusterrole": true}
	for name, c := range map[string]struct {
		by   []client.ObjectKey
		want bool
	}{
		"by none":                        {nil, false},
		"by one of them":                 {[]client.ObjectKey{{Namespace: "shop", Name: "till"}, {Namespace: "shop", Name: "cart-deployment"}}, true},
		"by one that does not count":     {[]client.ObjectKey{{Namespace: "shop", Name: "pay-deployment"}}, false},
		"by its like elsewhere":          {[]client.ObjectKey{{Namespace: "bank", Name: "cart-deployment"}}, false},
		"by one that is in no namespace": {[]client.ObjectKey{{Name: "admin-clusterrole"}}, true},
	} {
		if got := IsRequiredBy(AsBinding(boundBy("shop", "settings", PolicyKey{}, c.by...)), others); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// Without an ID of its own, a hub would take the objects of another for its own.
func TestHubID(t *testing.T) {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "one"}}
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "two"}}
	if id, err := HubID(t.Context(), adoptiontest.NewAPI(t, nil, system, other)); id != "one" || err != nil {
		t.Errorf("got %q, %v", id, err)
	}
	if id, err := HubID(t.Context(), adoptiontest.NewAPI(t, nil, other)); id != "" || !apierrors.IsNotFound(err) {
		t.Errorf("without kube-system: got %q, %v", id, err)
	}
}

// A cluster is abandoned only when it leaves: the annotation alone must not stop its objects from being released.
func TestIsAbandoned(t *testing.T) {
	leaving := &metav1.Time{}
	for name, c := range map[string]struct {
		deleted    *metav1.Time
		annotation string
		want       bool
	}{
		"leaves, abandoned": {leaving, "true", true}, "leaves": {leaving, "", false}, "leaves, not abandoned": {leaving, "false", false}, "stays": {nil, "true", false},
	} {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: c.deleted, Annotations: map[string]string{AnnotationAbandon: c.annotation}}}
		if got := IsAbandoned(cluster); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// The operator writes the status of Works; if that enqueued them, each write would lead to the next.
func TestSpecChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*workv1alpha1.Work)
		want   bool
	}{
		"the status": {func(w *workv1alpha1.Work) {
			w.ResourceVersion, w.Status.Conditions = "2", []metav1.Condition{{Type: "Applied"}}
		}, false},
		"an annotation":  {func(w *workv1alpha1.Work) { w.Annotations = map[string]string{"a": "b"} }, false},
		"the generation": {func(w *workv1alpha1.Work) { w.Generation = 2 }, true},
		"a label":        {func(w *workv1alpha1.Work) { w.Labels = map[string]string{"a": "b"} }, true},
	} {
		before := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 1, ResourceVersion: "1"}}
		after := before.DeepCopy()
		c.change(after)
		if got := SpecChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
