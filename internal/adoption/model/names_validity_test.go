package model

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// namesOf are all names that Fairlead makes of the name of a resource.
func namesOf(name string) map[string]string {
	work := &workv1alpha1.Work{}
	work.Name = WorkName(Template{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: name})
	return map[string]string{
		"the binding":                      BindingName(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, name),
		"the binding of a custom resource": BindingName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, name),
		"the Work":                         work.Name,
		"the original":                     OriginalName(work),
	}
}

// The names of roles may have any characters but / and %, and begin and end with any. Those of bindings, Works and Secrets may not.
func FuzzNamesAreValid(f *testing.F) {
	for _, name := range []string{
		"cart", "system:node", "Admin", "日本", ":", "-cart", ".cart", "cart.", "cart-", "a..b", "a.-b", "a-.b", "a:.b", "a.:b", "...",
		strings.Repeat("a", 253), strings.Repeat("a.", 126) + "a", strings.Repeat("a", 241) + ".b", strings.Repeat("a", 240) + ".b.c.d.e.f",
		strings.Repeat("a.", 120) + ":", strings.Repeat(":", 253),
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || len(name) > 253 || len(content.IsPathSegmentName(name)) > 0 {
			t.Skip("no object has this name")
		}
		for what, got := range namesOf(name) {
			if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 {
				t.Errorf("%s of %q is %q: %v", what, name, got, problems)
			}
			if again := namesOf(name)[what]; again != got {
				t.Errorf("%s of %q is %q, and then %q", what, name, got, again)
			}
		}
	})
}

// Names that become the same when they are made valid belong to different resources.
func TestNamesOfResemblingResourcesDiffer(t *testing.T) {
	long := strings.Repeat("a", 241)
	seen := map[string]string{}
	for _, name := range []string{
		"a-b", "a:b", "a_b", "A-b", "-a-b", "a-b-", "a..b", "a.-b", "a-.b", "a.b", "a--b", "-a..b", long + ".b", long + ".c", long + "-b", long + "b", long + "c",
	} {
		for what, got := range namesOf(name) {
			if other, found := seen[what+got]; found {
				t.Errorf("%s of %q and of %q is %s", what, name, other, got)
			}
			seen[what+got] = name
		}
	}
}

// Bindings and Works are found by these names: another one would leave those of earlier releases behind.
func TestNamesStayThoseOfEarlierReleases(t *testing.T) {
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	work := &workv1alpha1.Work{}
	work.Name = strings.Repeat("w", 250)
	for got, want := range map[string]string{
		BindingName(role, "system:node"):                          "system-node-clusterrole-" + Digest(role.Group, role.Kind, "system:node"),
		BindingName(role, "system:a.b"):                           "system-a.b-clusterrole-" + Digest(role.Group, role.Kind, "system:a.b"),
		BindingName(role, strings.Repeat("a", 240)+"-b"):          strings.Repeat("a", 240) + "-b-" + Digest(role.Group, role.Kind, strings.Repeat("a", 240)+"-b"),
		BindingName(role, strings.Repeat("a", 241)+"-b"):          strings.Repeat("a", 241) + "--" + Digest(role.Group, role.Kind, strings.Repeat("a", 241)+"-b"),
		OriginalName(work):                                        "before-" + strings.Repeat("w", 235) + "-" + Digest(work.Name),
		ObjectID(object("Deployment", "apps/v1", "shop", "cart")): Digest("apps", "Deployment", "shop", "cart"),
		ObjectID(object("ConfigMap", "v1", "shop", "cart")):       Digest("", "ConfigMap", "shop", "cart"),
		Digest("apps", "Deployment", "shop", "cart"):              "5a19f6ca6f",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
