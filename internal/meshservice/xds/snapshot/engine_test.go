package snapshot

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

var cart = model.ProxyID{Mesh: "default", Namespace: "shop", Name: "cart"}

// Disabled is nothing: MeshServices change no byte, and the bytes are those that they always were.
func TestDisabledIsNothing(t *testing.T) {
	for _, environment := range []string{"kubernetes", "universal"} {
		t.Run(environment, func(t *testing.T) {
			s, objects := readWorld(t, "testdata/"+environment+"-disabled.in.yaml")
			id := s.Proxies[0]
			with := s.engine(objects).Config(id)
			without := s.engine(slices.DeleteFunc(slices.Clone(objects), func(obj client.Object) bool {
				_, is := obj.(*kumav1alpha1.MeshService)
				return is
			})).Config(id)
			var versions strings.Builder
			for _, kind := range resource.Types() {
				fmt.Fprintf(&versions, "%s %s\n", kind.URL(), with.Version(kind))
				if !slices.EqualFunc(with.Of(kind), without.Of(kind), func(a, b *resource.Resource) bool { return string(a.Body.Value) == string(b.Body.Value) }) {
					t.Errorf("%s is another with MeshServices than without", kind.URL())
				}
			}
			file := "testdata/" + environment + "-disabled.versions"
			if *update {
				if err := os.WriteFile(file, []byte(versions.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || string(want) != versions.String() {
				t.Errorf("the bytes are not what they were (%v):\n%s", err, versions.String())
			}
		})
	}
}

// Tags stay until the status says Exclusive, and do not come back when something else of the Mesh is edited.
func TestExclusiveWaits(t *testing.T) {
	s, objects := readWorld(t, "testdata/kubernetes-exclusive.in.yaml")
	tagged := func(status kumav1alpha1.MeshStatus) bool {
		all := slices.Clone(objects)
		for i, obj := range all {
			if mesh, is := obj.(*kumav1alpha1.Mesh); is {
				mesh = mesh.DeepCopy()
				mesh.Generation, mesh.Status = 2, status
				all[i] = mesh
			}
		}
		return slices.ContainsFunc(s.engine(all).Config(s.Proxies[0]).Of(resource.Cluster), func(r *resource.Resource) bool {
			return s.Tags[r.Name] != ""
		})
	}
	for name, c := range map[string]struct {
		status kumav1alpha1.MeshStatus
		tags   bool
	}{
		"nothing said": {kumav1alpha1.MeshStatus{}, true},
		"generating":   {kumav1alpha1.MeshStatus{Mode: kumav1alpha1.ModeEverywhere, ObservedGeneration: 2}, true},
		"edited since": {kumav1alpha1.MeshStatus{Mode: kumav1alpha1.ModeExclusive, ObservedGeneration: 1}, false},
		"generated":    {kumav1alpha1.MeshStatus{Mode: kumav1alpha1.ModeExclusive, ObservedGeneration: 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tagged(c.status); got != c.tags {
				t.Errorf("there are tags: %t", got)
			}
		})
	}
}

// In Exclusive, requests are not mirrored to a tag, and that is a problem of the route.
func TestMirrorToTagIsAProblem(t *testing.T) {
	s, objects := readWorld(t, "testdata/kubernetes-exclusive.in.yaml")
	route := &kumav1alpha1.MeshHTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "kuma-system", Name: "mirrored"}}
	filter := `{"type": "RequestMirror", "requestMirror": {"backendRef": {"kind": "MeshService", "name": "a_shop_svc_80"}}}`
	route.Spec.To = []kumav1alpha1.MeshHTTPRouteTo{{TargetRef: kumav1alpha1.ToTargetRef{Kind: "Mesh"}, Rules: []kumav1alpha1.HTTPRule{{
		Default: kumav1alpha1.HTTPRuleDefault{Filters: []apiextensionsv1.JSON{{Raw: []byte(filter)}}},
	}}}}
	if !slices.ContainsFunc(s.engine(append(objects, route)).Problems("default"), func(p Problem) bool {
		return p.Field == "spec.to[0].rules[0].default.filters[0].requestMirror.backendRef" && strings.Contains(p.Message, "gets no traffic")
	}) {
		t.Error("a mirror that gets no requests is not among the problems")
	}
}

// What is found by indexes is what the rule says of each destination.
func TestReachedIsWhatReachSays(t *testing.T) {
	_, objects := readWorld(t, "testdata/multi-zone.in.yaml")
	labels := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	for _, mode := range []model.Mode{model.Disabled, model.Everywhere, model.ReachableBackendRefs, model.Exclusive} {
		for name, reach := range map[string]model.Reach{
			"nothing said": {},
			"services":     {Services: []string{"backend_shop_svc_8080", "nobody"}, ServicesSet: true},
			"all services": {Services: []string{"*"}, ServicesSet: true},
			"no refs":      {RefsSet: true},
			"refs": {RefsSet: true, Refs: []model.BackendRef{
				{Kind: model.MeshService, Name: "backend", Namespace: "shop"}, {Kind: model.MeshService, Name: "backend", Namespace: "shop", Port: 1},
				{Kind: model.MeshService, Labels: labels(kumav1alpha1.LabelDisplayName, "backend", kumav1alpha1.LabelZone, "west")},
			}},
			"every one":       {RefsSet: true, Refs: []model.BackendRef{{Kind: model.MeshService, Labels: labels()}, {Kind: model.MeshMultiZoneService, Labels: labels()}}},
			"by another":      {RefsSet: true, Refs: []model.BackendRef{{Kind: model.MeshService, Labels: labels(kumav1alpha1.LabelZone, "west")}}},
			"ref of no shape": {RefsSet: true, Refs: []model.BackendRef{{Kind: model.MeshService}}},
			"both":            {Services: []string{"backend_shop_svc_8080"}, ServicesSet: true, RefsSet: true, Refs: []model.BackendRef{{Kind: model.MeshService, Labels: labels()}}},
			"switched":        model.Reach{Services: []string{"backend_shop_svc_8080"}, ServicesSet: true}.WithMeshServices(),
		} {
			t.Run(string(mode)+" "+name, func(t *testing.T) {
				m := setting{Zone: "east", Environment: "kubernetes"}.engine(objects).state.meshes["default"]
				m.mode = mode
				var want []*destination
				for _, d := range m.destinations {
					if reach.Reaches(mode, d.Target) {
						want = append(want, d)
					}
				}
				slices.SortFunc(want, compareDestinations)
				if got, _ := m.destinationsFor(reach); !slices.Equal(got, want) {
					t.Errorf("%d are reached, want %d", len(got), len(want))
				}
			})
		}
	}
}

// A tenant is called neither at the ClusterIP nor by the name of another's Service, whatever his object says.
func TestTenantsClaimNothingOfOthers(t *testing.T) {
	s, objects := readWorld(t, "testdata/kubernetes-everywhere.in.yaml")
	thief := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{
		Name: "aaa", Namespace: "tenant", Labels: map[string]string{kumav1alpha1.LabelDisplayName: "backend", kumav1alpha1.LabelNamespace: "shop"},
	}}
	thief.Spec.Ports = portsOf(8080)
	thief.Status.VIPs = []kumav1alpha1.VIP{{IP: "10.96.0.7"}}
	thief.Status.Addresses = []kumav1alpha1.Address{{Hostname: "backend.shop.svc.cluster.local"}}
	before := s.engine(objects).Config(cart)
	after := s.engine(append(objects, thief)).Config(cart)
	for _, l := range before.Of(resource.Listener) {
		if now := after.Find(resource.Listener, l.Name); now == nil || now.Version != l.Version {
			t.Errorf("%s was taken over", l.Name)
		}
	}
}

// The engine is put to, flushed and read at once.
func TestConcurrentUse(t *testing.T) {
	s, objects := readWorld(t, "testdata/kubernetes-everywhere.in.yaml")
	e := s.engine(objects)
	var all sync.WaitGroup
	for _, do := range []func(int){
		func(i int) { e.Put(objects[i%len(objects)]) },
		func(i int) { e.Delete(objects[i%len(objects)]) },
		func(int) { e.Flush() },
		func(int) { e.Config(cart) },
		func(int) { e.Proxies("default"); e.Problems("default"); e.Explain(cart) },
		func(i int) { e.SetSwitched("default", map[string]bool{"shop/Dataplane/cart": i%2 == 0}) },
	} {
		all.Go(func() {
			for i := range 50 {
				do(i)
			}
		})
	}
	all.Wait()
}

// What cannot be told apart from what was there before touches nobody.
func TestSameAgainTouchesNobody(t *testing.T) {
	s, objects := readWorld(t, "testdata/policy-http-route.in.yaml")
	e := s.engine(objects)
	for _, obj := range objects {
		again := obj.DeepCopyObject().(client.Object)
		again.SetResourceVersion("2")
		again.SetAnnotations(map[string]string{"unrelated": "note"})
		e.Put(again)
	}
	if changed := e.Flush(); len(changed) > 0 {
		t.Errorf("%v were touched", changed)
	}
}

// An endpoint that moves is asked of no policy, and brings nothing new but itself.
func TestEndpointsMoveAlone(t *testing.T) {
	s, objects := readWorld(t, "testdata/policy-load-balancing.in.yaml")
	e := s.engine(objects)
	before := e.Config(cart)
	e.state.meshes["default"].policySet = nil // who asks it, falls
	for _, obj := range objects {
		if ingress, is := obj.(*kumav1alpha1.ZoneIngress); is {
			ingress = ingress.DeepCopy()
			ingress.Spec.Networking.Address = "192.0.2.99"
			e.Put(ingress)
		}
	}
	if changed := e.Flush(); !slices.Contains(changed, cart) {
		t.Errorf("only %v were told", changed)
	}
	after := e.Config(cart)
	for _, kind := range resource.Types() {
		if moved := kind == resource.Endpoint; slices.Equal(before.Of(kind), after.Of(kind)) == moved {
			t.Errorf("%s: want it to have moved: %v", kind.URL(), moved)
		}
	}
}

// Proxies with the same reach under the same policies have one config among them.
func TestConfigsAreShared(t *testing.T) {
	s, objects := readWorld(t, "testdata/kubernetes-everywhere.in.yaml")
	e := s.engine(objects)
	if a, b := e.Config(cart), e.Config(model.ProxyID{Mesh: "default", Namespace: "shop", Name: "backend-1"}); a == nil || a != b {
		t.Errorf("they are %p and %p", a, b)
	}
}

func TestUnknownKindIsRefused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a ConfigMap was taken")
		}
	}()
	New(desired.ZoneInfo{}).Put(&corev1.ConfigMap{})
}
