package model

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Names of bindings are readable, valid, and different for different templates.
func TestBindingName(t *testing.T) {
	seen := map[string]string{}
	for name, c := range map[string]struct{ group, kind, name, want string }{
		"of the core group":          {"", "ConfigMap", "settings", "settings-configmap"},
		"of a group of Kubernetes":   {"networking.k8s.io", "Ingress", "web", "web-ingress"},
		"of a group without a dot":   {"apps", "Deployment", "cart", "cart-deployment"},
		"of a custom resource":       {"example.com", "Deployment", "cart", "cart-deployment-[0-9a-f]{10}"},
		"of another custom resource": {"example.org", "Deployment", "cart", "cart-deployment-[0-9a-f]{10}"},
		"a role with a colon":        {"rbac.authorization.k8s.io", "ClusterRole", "system:node", "system-node-clusterrole-[0-9a-f]{10}"},
		"one that it resembles":      {"rbac.authorization.k8s.io", "ClusterRole", "system-node", "system-node-clusterrole"},
		"capitals":                   {"rbac.authorization.k8s.io", "ClusterRole", "Admin", "admin-clusterrole-[0-9a-f]{10}"},
		"too long":                   {"", "ConfigMap", strings.Repeat("a", 250), "a+-[0-9a-f]{10}"},
		"too long, too":              {"", "ConfigMap", strings.Repeat("a", 251), "a+-[0-9a-f]{10}"},
	} {
		got := BindingName(schema.GroupVersionKind{Group: c.group, Version: "v1", Kind: c.kind}, c.name)
		if !regexp.MustCompile("^"+c.want+"$").MatchString(got) || len(validation.IsDNS1123Subdomain(got)) > 0 {
			t.Errorf("%s: got %s", name, got)
		}
		if seen[got] != "" {
			t.Errorf("%s and %s have the same name %s", name, seen[got], got)
		}
		seen[got] = name
	}
}

// Works of the same name, of different kinds and namespaces, are in the same namespace of the hub.
func TestWorkName(t *testing.T) {
	cart := Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}
	other := func(change func(*Template)) Template {
		o := cart
		change(&o)
		return o
	}
	for name, o := range map[string]Template{
		"namespace": other(func(t *Template) { t.Namespace = "test" }),
		"kind":      other(func(t *Template) { t.Kind = "StatefulSet" }),
		"group":     other(func(t *Template) { t.APIVersion = "example.com/v1" }),
		"name":      other(func(t *Template) { t.Name = "pay" }),
	} {
		if WorkName(cart) == WorkName(o) {
			t.Errorf("another %s, and the same name %s", name, WorkName(o))
		}
	}
	if v2 := other(func(t *Template) { t.APIVersion = "apps/v2" }); WorkName(cart) != WorkName(v2) || !strings.HasPrefix(WorkName(cart), "cart-") {
		t.Errorf("%s, %s", WorkName(cart), WorkName(v2))
	}
}

func TestClaim(t *testing.T) {
	for name, key := range map[string]PolicyKey{"of a namespace": {Namespace: "shop", Name: "p"}, "of the cluster": {Name: "p"}, "none": {}} {
		for before, had := range map[string]PolicyKey{"after one of a namespace": {Namespace: "shop", Name: "old"}, "after one of the cluster": {Name: "old"}, "after none": {}} {
			b := NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart-deployment"})
			b.SetAnnotations(map[string]string{"team": "a"})
			Claim(b, had)
			Claim(b, key)
			if ClaimOf(b) != key || b.GetAnnotations()["team"] != "a" || IsTaken(b) != (key != PolicyKey{}) {
				t.Errorf("%s, %s: %v", name, before, b.GetAnnotations())
			}
		}
	}
}

// A template goes to the clusters of its placement, and once to each of those that require it.
func TestTargets(t *testing.T) {
	b := NewBinding(client.ObjectKey{Namespace: "shop", Name: "settings-configmap"})
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west", Replicas: 2}}
	b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{
		{Namespace: "shop", Name: "cart", Clusters: []workv1alpha2.TargetCluster{{Name: "west"}, {Name: "east"}}},
		{Namespace: "shop", Name: "pay", Clusters: []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "north"}}},
	}
	got := Targets(b)
	if len(got) != 3 || got[0] != (workv1alpha2.TargetCluster{Name: "west", Replicas: 2}) || got[1].Name != "east" || got[2].Name != "north" {
		t.Errorf("got %v", got)
	}
	if len(b.Spec.Clusters) != 1 {
		t.Error("the binding was changed")
	}
}

func TestBindingRequests(t *testing.T) {
	for path, want := range map[string]string{"shop/cart-deployment": "shop/cart-deployment", "admin-clusterrole": "/admin-clusterrole", "": ""} {
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationBinding: path}}}
		got := ""
		for _, r := range BindingRequests(t.Context(), work) {
			got += r.String()
		}
		if got != want {
			t.Errorf("%q: got %s", path, got)
		}
	}
}

func TestMergeKeys(t *testing.T) {
	live := map[string]string{"theirs": "1", "ours": "1", "dropped": "1"}
	got := MergeKeys(live, []string{"ours", "dropped"}, map[string]string{"ours": "2"}, map[string]string{"more": "3"})
	if want := map[string]string{"theirs": "1", "ours": "2", "more": "3"}; !maps.Equal(got, want) || len(live) != 3 {
		t.Errorf("got %v", got)
	}
	if MergeKeys(map[string]string{"ours": "1"}, []string{"ours"}) != nil || MergeKeys(nil, nil) != nil {
		t.Error("no keys are not nil")
	}
}

// Only labels and annotations that Fairlead owns are its own to remove.
func TestOwnedKeys(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:theirs":{}}}}`)},
		{Manager: FieldOwner, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:b":{},"f:a":{}},"f:annotations":{"f:example.com/note":{}}},"f:spec":{"f:labels":{"f:c":{}}}}`)},
		{Manager: FieldOwner, FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
		{Manager: FieldOwner},
	})
	labels, annotations := OwnedKeys(object)
	slices.Sort(labels)
	if strings.Join(labels, " ") != "a b" || strings.Join(annotations, " ") != "example.com/note" {
		t.Errorf("got %v, %v", labels, annotations)
	}
}
