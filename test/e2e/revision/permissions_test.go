package revision_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// grant is the smallest thing that a role can grant. Without a name it is for all objects of the resource.
type grant struct{ group, resource, verb, name string }

func (g grant) String() string {
	return strings.TrimSpace(g.verb + " " + g.resource + "." + g.group + " " + g.name)
}

func (g grant) covers(other grant) bool {
	is := func(have, want string) bool { return have == want || have == "*" }
	_, subresource, _ := strings.Cut(other.resource, "/")
	return is(g.group, other.group) && is(g.verb, other.verb) && (g.name == "" || g.name == other.name) &&
		(is(g.resource, other.resource) || subresource != "" && g.resource == "*/"+subresource)
}

// beyond are those of the wanted grants that nothing of what is held covers.
func beyond(held, wanted []grant) []string {
	// Most are held as they are wanted, and wanted many times.
	known := map[grant]bool{}
	for _, have := range held {
		known[have] = true
	}
	uncovered := map[string]bool{}
	for _, want := range wanted {
		if known[want] {
			continue
		}
		known[want] = true
		if !slices.ContainsFunc(held, func(have grant) bool { return have.covers(want) }) {
			uncovered[want.String()] = true
		}
	}
	return slices.Sorted(maps.Keys(uncovered))
}

func TestUncoveredGrants(t *testing.T) {
	pods := grant{"", "pods", "get", ""}
	cases := map[string]struct {
		held   grant
		wanted grant
		want   []string
	}{
		"the same":               {pods, pods, nil},
		"another verb":           {pods, grant{"", "pods", "list", ""}, []string{"list pods."}},
		"another group":          {pods, grant{"apps", "pods", "get", ""}, []string{"get pods.apps"}},
		"any verb":               {grant{"", "pods", "*", ""}, pods, nil},
		"any verb from one":      {pods, grant{"", "pods", "*", ""}, []string{"* pods."}},
		"any resource":           {grant{"", "*", "get", ""}, grant{"", "pods/log", "get", ""}, nil},
		"any resource from one":  {pods, grant{"", "*", "get", ""}, []string{"get *."}},
		"a subresource":          {pods, grant{"", "pods/log", "get", ""}, []string{"get pods/log."}},
		"of any resource":        {grant{"", "*/status", "get", ""}, grant{"", "pods/status", "get", ""}, nil},
		"any group":              {grant{"*", "pods", "get", ""}, pods, nil},
		"one name of all":        {pods, grant{"", "pods", "get", "a"}, nil},
		"all names from one":     {grant{"", "pods", "get", "a"}, pods, []string{"get pods."}},
		"one name from another":  {grant{"", "pods", "get", "a"}, grant{"", "pods", "get", "b"}, []string{"get pods. b"}},
		"one name from the same": {grant{"", "pods", "get", "a"}, grant{"", "pods", "get", "a"}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := beyond([]grant{c.held}, []grant{c.wanted}); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// grantsOf all roles among the objects.
func grantsOf(t testing.TB, objects []*unstructured.Unstructured) []grant {
	t.Helper()
	var all []grant
	for _, object := range objects {
		if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		if role.AggregationRule != nil {
			t.Errorf("%s %s grants what others do", object.GetKind(), role.Name)
		}
		for _, rule := range role.Rules {
			all = append(all, expand(t, rule)...)
		}
	}
	return all
}

func expand(t testing.TB, rule rbacv1.PolicyRule) []grant {
	t.Helper()
	if len(rule.NonResourceURLs) > 0 {
		t.Errorf("not about resources: %+v", rule)
	}
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []grant
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, grant{group, resource, verb, name})
				}
			}
		}
	}
	return all
}

// rendered is what one of Istio's charts makes of values for a release.
func rendered(t testing.TB, release types.NamespacedName, version, name string, user map[string]any) []*unstructured.Unstructured {
	t.Helper()
	loaded := loadChart(t, version, name)
	options := common.ReleaseOptions{Name: release.Name, Namespace: release.Namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(loaded, user, options, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for file, text := range files {
		if filepath.Ext(file) != ".yaml" {
			continue
		}
		found, err := chart.Decode(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, found...)
	}
	return objects
}

var loadedCharts struct {
	mu sync.Mutex
	by map[string]*chartv2.Chart
}

// loadChart reads each of Istio's charts once.
func loadChart(t testing.TB, version, name string) *chartv2.Chart {
	t.Helper()
	dir := filepath.Join(cluster.Charts(t), version, name)
	loadedCharts.mu.Lock()
	defer loadedCharts.mu.Unlock()
	if known := loadedCharts.by[dir]; known != nil {
		return known
	}
	loaded, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if loadedCharts.by == nil {
		loadedCharts.by = map[string]*chartv2.Chart{}
	}
	loadedCharts.by[dir] = loaded
	return loaded
}

// istiodRole is the role in which the operator holds what istiod is granted.
func istiodRole(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	release, err := chart.Render("fairlead", "fairlead", nil)
	if err != nil {
		t.Fatal(err)
	}
	role := slices.DeleteFunc(release.Objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() != "ClusterRole" || !strings.HasSuffix(object.GetName(), ":fairlead-istiod")
	})
	if len(role) != 1 {
		t.Fatalf("the chart has %d such roles", len(role))
	}
	return role
}

var chartVersions = []string{"v1.24.0", "v1.26.0", "v1.31.0", "v1.31.1"}

// Whoever creates a role must hold all that it grants, and should hold nothing else.
func TestGrantsAreThoseOfTheCharts(t *testing.T) {
	t.Parallel()
	held := grantsOf(t, istiodRole(t))
	var all []grant
	for _, version := range chartVersions {
		var granted []grant
		for _, name := range []string{"base", "istiod"} {
			release := types.NamespacedName{Namespace: "istio-system", Name: name}
			// CRDs grant nothing, and take longer than all the rest.
			granted = append(granted, grantsOf(t, rendered(t, release, version, name, map[string]any{"base": withoutCRDs()}))...)
		}
		if len(granted) < 50 {
			t.Errorf("%s: only %d grants were found", version, len(granted))
		}
		for _, g := range beyond(held, granted) {
			t.Errorf("istiod %s is granted what the operator does not hold: %s", version, g)
		}
		all = append(all, granted...)
	}
	for _, g := range beyond(all, held) {
		t.Errorf("the operator holds what no istiod is granted: %s", g)
	}
}
