package desired

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

func makeDataplane(name string, age int64, inbounds ...kumav1alpha1.Inbound) *kumav1alpha1.Dataplane {
	return &kumav1alpha1.Dataplane{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kuma-system", CreationTimestamp: metav1.Unix(1000-age, 0)},
		Spec:       kumav1alpha1.DataplaneSpec{Networking: kumav1alpha1.Networking{Address: "10.0.0.1", Inbound: inbounds}},
	}
}

func serves(service string, port int32, protocol string) kumav1alpha1.Inbound {
	return kumav1alpha1.Inbound{Port: port, Tags: map[string]string{kumav1alpha1.TagService: service, kumav1alpha1.TagProtocol: protocol}}
}

func TestUniversalService(t *testing.T) {
	named := serves("backend", 9090, "http")
	named.Name = "admin"
	ports, conflict := UniversalPorts("backend", []*kumav1alpha1.Dataplane{
		makeDataplane("b1", 1, named, serves("backend", 8080, "grpc"), serves("other", 7070, "http")),
	})
	if conflict != "" {
		t.Error(conflict)
	}
	got := UniversalService("backend", "backend", "default", ports, inUniversal)
	want := `metadata:
  labels:
    kuma.io/display-name: backend
    kuma.io/managed-by: fairlead
    kuma.io/mesh: default
    kuma.io/origin: zone
    kuma.io/zone: east
  name: backend
  namespace: kuma-system
spec:
  ports:
  - appProtocol: grpc
    name: "8080"
    port: 8080
    targetPort: 8080
  - appProtocol: http
    name: admin
    port: 9090
    targetPort: 9090
  selector:
    dataplaneTags:
      kuma.io/service: backend
`
	if diff := cmp.Diff(want, yamlOf(t, got)); diff != "" {
		t.Error(diff)
	}
	if !IsGenerated(got, inUniversal) {
		t.Error("it is not told from what others made")
	}
	got.Labels[kumav1alpha1.LabelZone] = "west"
	if IsGenerated(got, inUniversal) {
		t.Error("what another zone generated would be changed and removed")
	}
}

func TestUniversalPorts(t *testing.T) {
	ignored := serves("backend", 1234, "http")
	ignored.State = kumav1alpha1.InboundIgnored
	unlike := "Dataplane young serves backend at port 9090 (http), and the older Dataplane old, which takes precedence, at port 8080 (http)"
	for name, c := range map[string]struct {
		dataplanes []*kumav1alpha1.Dataplane
		ports      string
		conflict   string
	}{
		"none": {nil, "", ""},
		"alike": {[]*kumav1alpha1.Dataplane{makeDataplane("a", 1, serves("backend", 8080, "http")), makeDataplane("b", 2, serves("backend", 8080, "http"))},
			"port 8080 (http)", ""},
		"the older wins": {[]*kumav1alpha1.Dataplane{makeDataplane("young", 1, serves("backend", 9090, "http")), makeDataplane("old", 2, serves("backend", 8080, "http"))},
			"port 8080 (http)", unlike},
		"of the same age, by name": {[]*kumav1alpha1.Dataplane{makeDataplane("young", 1, serves("backend", 9090, "http")), makeDataplane("old", 1, serves("backend", 8080, "http"))},
			"port 8080 (http)", unlike},
		"another protocol": {[]*kumav1alpha1.Dataplane{makeDataplane("young", 1, serves("backend", 8080, "grpc")), makeDataplane("old", 2, serves("backend", 8080, "http"))},
			"port 8080 (http)", "at port 8080 (grpc)"},
		"another service": {[]*kumav1alpha1.Dataplane{makeDataplane("young", 1, serves("other", 9090, "grpc")), makeDataplane("old", 2, serves("backend", 8080, "http"))},
			"port 8080 (http)", ""},
		"an ignored inbound": {[]*kumav1alpha1.Dataplane{makeDataplane("young", 1, ignored, serves("backend", 8080, "http")), makeDataplane("old", 2, ignored)},
			"port 8080 (http)", ""},
		"a port twice": {[]*kumav1alpha1.Dataplane{makeDataplane("a", 1, serves("backend", 8080, "http"), serves("backend", 8080, "grpc"))},
			"port 8080 (http)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ports, conflict := UniversalPorts("backend", c.dataplanes)
			if portsText(ports) != c.ports || !strings.Contains(conflict, c.conflict) || (conflict == "") != (c.conflict == "") {
				t.Errorf("got %s, %q", portsText(ports), conflict)
			}
		})
	}
}

func TestUniversalName(t *testing.T) {
	mine := func(name, mesh string) *kumav1alpha1.MeshService {
		return UniversalService(name, "backend", mesh, nil, inUniversal)
	}
	theirs := func(name, mesh string) *kumav1alpha1.MeshService {
		m := mine(name, mesh)
		delete(m.Labels, kumav1alpha1.LabelManagedBy)
		return m
	}
	synced := mine("backend", "default")
	synced.Labels[kumav1alpha1.LabelZone] = "west"
	for name, c := range map[string]struct {
		there []*kumav1alpha1.MeshService
		want  string
	}{
		"nothing there":                  {nil, "backend"},
		"ours":                           {[]*kumav1alpha1.MeshService{mine("backend", "default")}, "backend"},
		"somebody's":                     {[]*kumav1alpha1.MeshService{theirs("backend", "default")}, ""},
		"another mesh's":                 {[]*kumav1alpha1.MeshService{mine("backend", "other")}, "backend.default"},
		"another mesh's, and ours":       {[]*kumav1alpha1.MeshService{mine("backend", "other"), mine("backend.default", "default")}, "backend.default"},
		"ours, where another mesh's was": {[]*kumav1alpha1.MeshService{mine("backend.default", "default")}, "backend.default"},
		"another zone's":                 {[]*kumav1alpha1.MeshService{synced}, "backend.default"},
		"another mesh's, and somebody's": {[]*kumav1alpha1.MeshService{mine("backend", "other"), theirs("backend.default", "default")}, ""},
		"another mesh's, in both places": {[]*kumav1alpha1.MeshService{mine("backend", "other"), theirs("backend.default", "other")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, free := UniversalName("backend", "default", func(name string) *kumav1alpha1.MeshService {
				for _, one := range c.there {
					if one.Name == name {
						return one
					}
				}
				return nil
			}, inUniversal)
			if free != (c.want != "") || free && got != c.want {
				t.Errorf("got %q, %v, want %q", got, free, c.want)
			}
		})
	}
}

func TestIsName(t *testing.T) {
	for service, want := range map[string]bool{
		"backend": true, "backend-api2": true, "backend_api": false, "demo-app_kuma-demo_svc_5000": false, "": false, "Backend": false,
		strings.Repeat("a", 64): false, "a.b": false, "-a": false,
	} {
		if IsMeshServiceName(service) != want {
			t.Errorf("%q: %v", service, !want)
		}
	}
}

func TestHostname(t *testing.T) {
	service := &metav1.ObjectMeta{Name: "cart-2f4b", Namespace: "kuma-system", Labels: map[string]string{
		kumav1alpha1.LabelDisplayName: "cart", kumav1alpha1.LabelNamespace: "shop", kumav1alpha1.LabelZone: "west", kumav1alpha1.LabelMesh: "payments", "team": "a",
	}}
	for name, c := range map[string]struct{ template, want, err string }{
		"all of it":     {"{{ .Name }}.{{ .DisplayName }}.{{ .Namespace }}.{{ .Zone }}.{{ .Mesh }}.local", "cart-2f4b.cart.shop.west.payments.local", ""},
		"a label":       {`{{ label "team" }}.{{ .DisplayName }}.local`, "a.cart.local", ""},
		"a constant":    {"cart.local", "cart.local", ""},
		"no such label": {`{{ label "tier" }}.local`, "", "has no label tier"},
		"no template":   {"{{ .Name", "", "spec.template"},
		"no such field": {"{{ .Port }}.local", "", "a template can use .Name"},
		"no function":   {`{{ env "HOME" }}`, "", "not defined"},
		"no hostname":   {"{{ .DisplayName }}_x", "", `"cart_x" is not a hostname`},
		"nothing":       {"{{/* nothing */}}", "", `"" is not a hostname`},
		"too long":      {strings.Repeat("a.", 200), "", "too long"},
		"for ever":      {`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, "", "depth"},
	} {
		t.Run(name, func(t *testing.T) {
			generator := &kumav1alpha1.HostnameGenerator{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "kuma-system"}}
			generator.Spec.Template = c.template
			got, err := hostnameOf(generator, service, onKubernetes)
			if got != c.want || (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), "HostnameGenerator kuma-system/g")) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// A tenant chooses the names and labels of services, and must not get the hostname of another's service by them.
func TestHostnamesOfTenants(t *testing.T) {
	allowing := RulesOf(&metav1.ObjectMeta{Annotations: map[string]string{kumav1alpha1.AnnotationAllowedHostnames: "pay.example.org,*.bank.local"}})
	for name, c := range map[string]struct {
		namespace, template string
		rules               NamespaceRules
		has                 string
		want                string
	}{
		"with the namespace":       {namespace: "bank", template: "{{ .DisplayName }}.{{ .Namespace }}.mesh.local", want: "pay.bank.mesh.local"},
		"without it":               {namespace: "bank", template: "{{ .DisplayName }}.mesh.local"},
		"without it, by the owner": {namespace: "kuma-system", template: "{{ .DisplayName }}.mesh.local", want: "pay.mesh.local"},
		"by a label":               {namespace: "bank", template: `{{ label "team" }}.shop.mesh.local`},
		"allowed":                  {namespace: "bank", template: "{{ .DisplayName }}.example.org", rules: allowing, want: "pay.example.org"},
		"of an allowed domain":     {namespace: "bank", template: "{{ .DisplayName }}.bank.local", rules: allowing, want: "pay.bank.local"},
		"of no allowed domain":     {namespace: "till", template: "{{ .DisplayName }}.xbank.local", rules: allowing},
		"of a tag":                 {namespace: "bank", template: "bank.mesh"},
		"that it has already":      {namespace: "bank", template: "{{ .DisplayName }}.mesh.local", has: "pay.mesh.local", want: "pay.mesh.local"},
	} {
		t.Run(name, func(t *testing.T) {
			service := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Name: "pay", Namespace: c.namespace, Labels: map[string]string{"team": "backend"}}}
			generator := &kumav1alpha1.HostnameGenerator{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "kuma-system"}}
			generator.Spec.Template, generator.Spec.Selector.MeshService = c.template, &kumav1alpha1.LabelMatch{}
			addresses, reason, problem := Addresses(service, []kumav1alpha1.Address{{Hostname: c.has}}, []*kumav1alpha1.HostnameGenerator{generator},
				c.rules, onKubernetes, func(string) string { return "" })
			got := ""
			for _, a := range addresses {
				got = a.Hostname
			}
			if got != c.want || (reason == kumav1alpha1.ReasonHostnameNotAllowed) != (c.want == "") ||
				c.want == "" && !strings.Contains(problem, "annotation fairlead.dev/allowed-hostnames of Namespace "+c.namespace) {
				t.Errorf("it has %q, and %s: %s", got, reason, problem)
			}
		})
	}
	theirs := &metav1.ObjectMeta{Namespace: "bank", Name: "pay", CreationTimestamp: metav1.Unix(1, 0)}
	owners := &metav1.ObjectMeta{Namespace: "kuma-system", Name: "pay", CreationTimestamp: metav1.Unix(2, 0)}
	if !HasPrecedence(owners, theirs, onKubernetes) || HasPrecedence(theirs, owners, onKubernetes) {
		t.Error("an older service of a tenant takes precedence over one of the mesh owner")
	}
}

func TestServes(t *testing.T) {
	ready, not := serves("backend", 80, "http"), serves("backend", 80, "http")
	not.State = kumav1alpha1.InboundNotReady
	ignored := not
	ignored.State = kumav1alpha1.InboundIgnored
	byTag := kumav1alpha1.MeshServiceSelector{DataplaneTags: map[string]string{kumav1alpha1.TagService: "backend"}}
	byName := kumav1alpha1.MeshServiceSelector{DataplaneRef: &kumav1alpha1.DataplaneRef{Name: "d"}}
	for name, c := range map[string]struct {
		selector        kumav1alpha1.MeshServiceSelector
		dataplane       *kumav1alpha1.Dataplane
		serves, healthy bool
	}{
		"ready":           {byTag, makeDataplane("d", 1, ready), true, true},
		"not ready":       {byTag, makeDataplane("d", 1, not), true, false},
		"one of two":      {byTag, makeDataplane("d", 1, not, ready), true, true},
		"ignored":         {byTag, makeDataplane("d", 1, ignored), false, false},
		"another":         {byTag, makeDataplane("d", 1, serves("other", 80, "http")), false, false},
		"by name":         {byName, makeDataplane("d", 1, ready), true, true},
		"another by name": {byName, makeDataplane("e", 1, ready), false, false},
		"no selector":     {kumav1alpha1.MeshServiceSelector{}, makeDataplane("d", 1, ready), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			service := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Name: "backend", Namespace: "kuma-system"}}
			service.Spec.Selector = c.selector
			if serves, healthy, _ := Serves(service, c.dataplane, NamespaceRules{}, onKubernetes); serves != c.serves || healthy != c.healthy {
				t.Errorf("serves %v, healthy %v", serves, healthy)
			}
			c.dataplane.Labels = map[string]string{kumav1alpha1.LabelMesh: "other"}
			if serves, _, _ := Serves(service, c.dataplane, NamespaceRules{}, onKubernetes); serves {
				t.Error("it serves one of another mesh")
			}
		})
	}
}

func TestOlder(t *testing.T) {
	old, young := makeDataplane("z", 2), makeDataplane("a", 1)
	if !IsOlder(old, young) || IsOlder(young, old) || IsOlder(old, old) {
		t.Error("age does not count")
	}
	old.CreationTimestamp = young.CreationTimestamp
	if IsOlder(old, young) || !IsOlder(young, old) {
		t.Error("the name does not count")
	}
}
