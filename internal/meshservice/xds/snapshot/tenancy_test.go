package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// proxyIn is a Dataplane of a namespace with one inbound.
func proxyIn(namespace, address string, tags map[string]string) *kumav1alpha1.Dataplane {
	d := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
	d.Spec.Networking.Address = address
	d.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 80, Tags: tags}}
	return d
}

// addressesOf are the addresses of the endpoints of a tag.
func addressesOf(e *Engine, tag string) []string {
	d := e.state.meshes["default"].destinations[model.TagKey(tag)]
	if d == nil {
		return nil
	}
	var all []string
	for _, endpoint := range d.endpoints {
		all = append(all, endpoint.Address)
	}
	return all
}

// A tenant cannot receive calls of a service of a universal zone: not by its tag, which would even take precedence as that of the
// own zone, until the Namespace allows the value.
func TestTenantClaimsServiceOfZone(t *testing.T) {
	ingress := &kumav1alpha1.ZoneIngress{ObjectMeta: metav1.ObjectMeta{Namespace: "kuma-system", Name: "west"}}
	ingress.Spec.Zone, ingress.Spec.Networking.Address, ingress.Spec.Networking.Port = "west", "192.0.2.1", 10001
	ingress.Spec.AvailableServices = []kumav1alpha1.AvailableService{{Tags: map[string]string{kumav1alpha1.TagService: "payments"}}}
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	mesh.Spec.Routing = &kumav1alpha1.Routing{LocalityAwareLoadBalancing: true}
	e := setting{Zone: "east", Environment: "kubernetes"}.engine(nil)
	e.Put(mesh)
	e.Put(ingress)
	e.Put(proxyIn("shop", "10.0.0.1", map[string]string{kumav1alpha1.TagService: "cart_shop_svc_80"}))
	e.Put(proxyIn("bank", "10.6.6.6", map[string]string{kumav1alpha1.TagService: "payments"}))
	expect := func(when string, want ...string) {
		t.Helper()
		e.Flush()
		if got := addressesOf(e, "payments"); !slices.Equal(got, want) {
			t.Errorf("%s, calls of payments go to %v, want %v", when, got, want)
		}
	}
	expect("with the tag of a tenant", "192.0.2.1")
	if got := addressesOf(e, "cart_shop_svc_80"); !slices.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("another tenant is disturbed: %v", got)
	}
	problems := e.Problems("default")
	if len(problems) != 1 || problems[0].Object != "Dataplane bank/one" || problems[0].Field != "spec.networking.inbound[0].tags[kuma.io/service]" ||
		!strings.Contains(problems[0].Message, "add payments to the annotation fairlead.dev/allowed-services of Namespace bank") {
		t.Errorf("the problems are %+v", problems)
	}

	e.PutNamespace(&metav1.ObjectMeta{Name: "bank", Annotations: map[string]string{kumav1alpha1.AnnotationAllowedServices: "orders, payments"}})
	expect("once the Namespace allows it", "10.6.6.6", "192.0.2.1")
	if problems := e.Problems("default"); len(problems) > 0 {
		t.Errorf("the problems are %+v", problems)
	}
	e.PutNamespace(&metav1.ObjectMeta{Name: "bank"})
	expect("once it does not any more", "192.0.2.1")
}

// A tenant cannot join a mesh that is not that of the namespace: neither with a proxy nor with a service.
func TestTenantNamesMesh(t *testing.T) {
	spy := proxyIn("bank", "10.6.6.6", map[string]string{kumav1alpha1.TagService: "spy_bank_svc_80"})
	spy.Labels = map[string]string{kumav1alpha1.LabelMesh: "vault"}
	service := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "spy", Labels: spy.Labels}}
	service.Spec.Ports = []kumav1alpha1.Port{{Port: 80}}
	own := proxyIn("safe", "10.0.0.1", map[string]string{kumav1alpha1.TagService: "till_safe_svc_80"})
	own.Labels = spy.Labels
	e := setting{Zone: "east", Environment: "kubernetes"}.engine(nil)
	e.Put(&kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "vault"}})
	e.PutNamespace(&metav1.ObjectMeta{Name: "safe", Labels: spy.Labels})
	for _, obj := range []model.Object{spy, service, own} {
		e.Put(obj)
	}
	expect := func(when string, joined bool) {
		t.Helper()
		e.Flush()
		m := e.state.meshes["vault"]
		if got := e.Config(model.ProxyID{Mesh: "vault", Namespace: "bank", Name: "one"}) != nil; got != joined {
			t.Errorf("%s, that the proxy has a configuration is %t", when, got)
		}
		if got := len(m.services) > 0; got != joined {
			t.Errorf("%s, that the MeshService counts is %t", when, got)
		}
		if e.Config(model.ProxyID{Mesh: "vault", Namespace: "safe", Name: "one"}) == nil {
			t.Errorf("%s, the proxy of the mesh has no configuration", when)
		}
	}
	expect("from another mesh", false)
	var said []string
	for _, p := range e.Problems("vault") {
		said = append(said, p.Object)
		if !strings.Contains(p.Message, "name Mesh default, or add vault to the annotation fairlead.dev/allowed-meshes of Namespace bank") {
			t.Errorf("it says %q", p.Message)
		}
	}
	if !slices.Equal(said, []string{"Dataplane bank/one", "MeshService bank/spy"}) {
		t.Errorf("problems are of %v", said)
	}
	if got := e.DataplaneProblems(spy); len(got) != 1 || got[0].Field != "metadata.labels[kuma.io/mesh]" {
		t.Errorf("of the Dataplane it says %+v", got)
	}
	e.PutNamespace(&metav1.ObjectMeta{Name: "bank", Annotations: map[string]string{kumav1alpha1.AnnotationAllowedMeshes: "vault"}})
	expect("allowed", true)
	e.DeleteNamespace("bank")
	expect("without its Namespace", false)
	e.Delete(spy)
	e.Delete(service)
	expect("deleted", false)
}

// A tenant's routes that are too large are left out and reported, and those of others stay as they are.
func TestTenantRoutesAreBounded(t *testing.T) {
	s, objects := readWorld(t, "testdata/kubernetes-everywhere.in.yaml")
	e := s.engine(objects)
	before := e.Config(cart)
	route := &kumav1alpha1.MeshHTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "many"}}
	for i := range 100 {
		to := kumav1alpha1.MeshHTTPRouteTo{TargetRef: kumav1alpha1.ToTargetRef{Kind: "Mesh"}}
		for j := range 60 {
			to.Hostnames = append(to.Hostnames, fmt.Sprintf("%d-%d.example.org", i, j))
		}
		for j := range 250 {
			to.Rules = append(to.Rules, kumav1alpha1.HTTPRule{Matches: []kumav1alpha1.HTTPMatch{{Path: &kumav1alpha1.PathMatch{Type: "PathPrefix", Value: fmt.Sprintf("/%d", j)}}}})
		}
		route.Spec.To = append(route.Spec.To, to)
	}
	route.Spec.To = append(route.Spec.To, kumav1alpha1.MeshHTTPRouteTo{TargetRef: kumav1alpha1.ToTargetRef{Kind: "Mesh"}, Hostnames: make([]string, 1000)})
	e.Put(proxyIn("bank", "10.6.6.6", map[string]string{kumav1alpha1.TagService: "till_bank_svc_80"}))
	e.Put(route)
	e.Flush()
	for _, r := range e.Config(model.ProxyID{Mesh: "default", Namespace: "bank", Name: "one"}).Of(resource.Route) {
		if size := len(r.Body.Value); size > 8<<20 {
			t.Errorf("the routes of %s have %d bytes", r.Name, size)
		}
	}
	for _, kind := range []resource.Type{resource.Cluster, resource.Route} {
		for _, r := range before.Of(kind) {
			if now := e.Config(cart).Find(kind, r.Name); now == nil || now.Version != r.Version {
				t.Errorf("%s of another tenant has changed", r.Name)
			}
		}
	}
	var said []string
	for _, p := range e.Problems("default") {
		if p.Object == "MeshHTTPRoute bank/many" {
			said = append(said, p.Field+": "+p.Message)
		}
	}
	text := strings.Join(said, "\n")
	for _, want := range []string{"spec.to[0]: with it the routes of a destination", "remove rules or hostnames", "spec.to[100].hostnames: 1000 hostnames are more than 64"} {
		if !strings.Contains(text, want) {
			t.Errorf("the problems lack %q: %.500s", want, text)
		}
	}

	// An entry that is left out is reported even if no configuration changes, and no longer once it is removed.
	surplus := &kumav1alpha1.MeshHTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "surplus"}}
	surplus.Spec.To = slices.Clone(route.Spec.To[:1])
	surplus.Spec.To[0].Rules = append(surplus.Spec.To[0].Rules[:249:249], kumav1alpha1.HTTPRule{
		Matches: []kumav1alpha1.HTTPMatch{{Path: &kumav1alpha1.PathMatch{Type: "PathPrefix", Value: "/surplus"}}},
	})
	told := func() bool {
		e.Flush()
		return slices.ContainsFunc(e.Problems("default"), func(p Problem) bool { return p.Object == "MeshHTTPRoute bank/surplus" })
	}
	if e.Put(surplus); !told() {
		t.Error("an entry for which there is no room is not among the problems")
	}
	if e.Delete(surplus); told() {
		t.Error("it is among the problems after it was removed")
	}
}

// Affinity tags of a tenant tell apart only proxies that its policy may apply to: others go on sharing a configuration.
func TestTenantAffinityTags(t *testing.T) {
	groups := func(namespace string, target kumav1alpha1.ToTargetRef, key string) (shop, bank int) {
		e := setting{Zone: "east", Environment: "kubernetes"}.engine(nil)
		policy := &kumav1alpha1.MeshLoadBalancingStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "near"}}
		policy.Spec.To = []kumav1alpha1.MeshLoadBalancingStrategyTo{{
			TargetRef: target,
			Default:   *aware(kumav1alpha1.LocalityAwareness{LocalZone: &kumav1alpha1.LocalZone{AffinityTags: []kumav1alpha1.AffinityTag{{Key: key}}}}),
		}}
		e.Put(policy)
		for _, namespace := range []string{"shop", "bank"} {
			for i := range 20 {
				d := proxyIn(namespace, fmt.Sprintf("10.0.0.%d", i+1), map[string]string{kumav1alpha1.TagService: "till_" + namespace + "_svc_80", "pod": fmt.Sprint(i), "k8s.io/node": fmt.Sprint(i % 3)})
				d.Name = fmt.Sprint(i)
				e.Put(d)
			}
		}
		e.Flush()
		configs := map[string]sets.Set[*group]{"shop": {}, "bank": {}}
		for id, g := range e.state.meshes["default"].grouped {
			configs[id.Namespace].Insert(g)
		}
		return len(configs["shop"]), len(configs["bank"])
	}
	everything, own := kumav1alpha1.ToTargetRef{Kind: "Mesh"}, kumav1alpha1.ToTargetRef{Kind: "MeshService", Name: "till", Namespace: "bank"}
	for name, c := range map[string]struct {
		namespace  string
		target     kumav1alpha1.ToTargetRef
		key        string
		shop, bank int
	}{
		"of a tenant":                                   {"bank", everything, "pod", 1, 20},
		"of a tenant, for its own service":              {"bank", own, "pod", 1, 20},
		"of a tenant, for its own service, by the node": {"bank", own, "k8s.io/node", 3, 3},
		"of the system":                                 {"kuma-system", everything, "pod", 20, 20},
		"that targets nothing":                          {"kuma-system", kumav1alpha1.ToTargetRef{Kind: "MeshGateway"}, "pod", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if shop, bank := groups(c.namespace, c.target, c.key); shop != c.shop || bank != c.bank {
				t.Errorf("there are %d configurations in shop and %d in bank, want %d and %d", shop, bank, c.shop, c.bank)
			}
		})
	}
}
