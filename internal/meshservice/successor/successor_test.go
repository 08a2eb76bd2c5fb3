package successor

import (
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestMended(t *testing.T) {
	const (
		tag       = "{kind: MeshService, name: backend_shop_svc_80}"
		byNumber  = `{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/namespace: shop}, sectionName: "80"}`
		byName    = "{kind: MeshService, labels: {kuma.io/display-name: backend, k8s.kuma.io/namespace: shop}, sectionName: http}"
		otherPort = `{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/namespace: shop}, sectionName: "81"}`
		multiZone = "{kind: MeshMultiZoneService, labels: {kuma.io/display-name: backend}}"
		universal = "{kind: MeshService, name: backend}"
		ofMachine = `{kind: MeshService, labels: {kuma.io/display-name: backend}, sectionName: "8080"}`
	)
	named := portsOf(Port{80, "http"}, Port{90, "grpc"})
	const grpc = "{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/namespace: shop}, sectionName: grpc}"
	cases := map[string]struct {
		refs  []string
		port  uint16
		route bool
		want  []bool
		ports Ports
	}{
		"a tag alone":                            {[]string{tag}, 0, true, []bool{false}, nil},
		"its section beside it":                  {[]string{tag, byNumber}, 0, true, []bool{true, false}, nil},
		"its section, before it":                 {[]string{byNumber, tag}, 0, true, []bool{false, true}, nil},
		"one section for two":                    {[]string{tag, byNumber, tag}, 0, false, []bool{true, false, false}, nil},
		"one section for the second of two":      {[]string{tag, tag, byNumber}, 0, false, []bool{false, true, false}, nil},
		"the port by its name, next to it":       {[]string{tag, byName}, 0, true, []bool{true, false}, nil},
		"the port by its name, elsewhere":        {[]string{byName, tag}, 0, true, []bool{false, false}, nil},
		"another port":                           {[]string{tag, otherPort}, 0, true, []bool{false, false}, nil},
		"a route for all zones":                  {[]string{tag, multiZone}, 0, true, []bool{true, false}, nil},
		"a route for another of all zones":       {[]string{tag, "{kind: MeshMultiZoneService, name: cart}"}, 0, true, []bool{false, false}, nil},
		"all zones, where MeshServices count":    {[]string{tag, multiZone}, 0, false, []bool{false, false}, nil},
		"a tag without a port":                   {[]string{universal, ofMachine}, 0, true, []bool{true, false}, nil},
		"a tag without a port, which is another": {[]string{ofMachine, universal}, 80, true, []bool{false, false}, nil},
		"a subset":                               {[]string{"{kind: MeshServiceSubset, name: backend}", ofMachine}, 0, true, []bool{false, false}, nil},

		"the known name of the port, elsewhere":             {[]string{byName, tag}, 0, true, []bool{false, true}, named},
		"the number of the port, whose name is known":       {[]string{tag, byNumber}, 0, true, []bool{true, false}, named},
		"the name of another port, next to it":              {[]string{tag, grpc}, 0, false, []bool{false, false}, named},
		"a name next to it, of a service that is not known": {[]string{tag, byName}, 0, false, []bool{true, false}, portsOf()},
		"a name next to it, where zones differ":             {[]string{tag, byName}, 0, false, []bool{true, false}, portsOf(Port{80, "http"}, Port{80, "web"})},
		"a tag without a port, whose only port is known":    {[]string{ofMachine, universal}, 0, false, []bool{false, true}, portsOf(Port{8080, "8080"})},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			refs := make([]Ref, len(c.refs))
			for i, text := range c.refs {
				if err := yaml.Unmarshal([]byte(text), &refs[i]); err != nil {
					t.Fatal(err)
				}
			}
			if got := Converted(refs, c.port, c.ports, c.route); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func portsOf(ports ...Port) Ports {
	return func(name, _ string) []Port {
		if name != "backend" {
			return nil
		}
		return ports
	}
}

func TestSuccessor(t *testing.T) {
	const tag = "backend_shop_svc_80"
	cases := map[string]struct {
		name  string
		port  uint16
		ports Ports
		want  Wanted
		why   string
	}{
		"a number, and nothing known":              {tag, 0, nil, Wanted{Section{"backend", "shop", "80"}, "80", false}, ""},
		"a number, of a service that is not known": {tag, 0, portsOf(), Wanted{Section{"backend", "shop", "80"}, "80", false}, ""},
		"the name of the port":                     {tag, 0, portsOf(Port{80, "http"}, Port{90, "grpc"}), Wanted{Section{"backend", "shop", "http"}, "80", true}, ""},
		"a port without a name":                    {tag, 0, portsOf(Port{80, "80"}), Wanted{Section{"backend", "shop", "80"}, "80", true}, ""},
		"the same name in two zones":               {tag, 0, portsOf(Port{80, "http"}, Port{80, "http"}), Wanted{Section{"backend", "shop", "http"}, "80", true}, ""},
		"two names": {
			tag, 0, portsOf(Port{80, "web"}, Port{80, "http"}), Wanted{Section{"backend", "shop", "80"}, "80", false},
			"zones name port 80 of MeshService backend differently: add an entry for each sectionName of http, web",
		},
		"no such port": {
			tag, 0, portsOf(Port{90, "grpc"}, Port{8080, "8080"}), Wanted{Section{"backend", "shop", "80"}, "80", false},
			"MeshService backend has no port 80, but 8080, grpc (port 90): correct the entry, or remove it",
		},
		"universal":                {"backend", 0, nil, Wanted{Section{"backend", "", ""}, "", false}, "the value has no port: give --port, or add an entry with a sectionName"},
		"universal, with one port": {"backend", 0, portsOf(Port{80, "http"}), Wanted{Section{"backend", "", "http"}, "80", true}, ""},
		"universal, with two": {
			"backend", 0, portsOf(Port{80, "http"}, Port{90, "grpc"}), Wanted{Section{"backend", "", ""}, "", false},
			"the value has no port, and MeshService backend has grpc (port 90), http (port 80): give --port, or add an entry with a sectionName for each",
		},
		"universal, with --port":     {"backend", 90, portsOf(Port{80, "http"}, Port{90, "grpc"}), Wanted{Section{"backend", "", "grpc"}, "90", true}, ""},
		"what no MeshService can be": {"my_backend", 80, nil, Wanted{}, "the value is not a valid MeshService name, so no MeshService replaces it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, why := Ref{Kind: "MeshService", Name: c.name}.Successor(c.port, c.ports)
			if got != c.want || why != c.why {
				t.Errorf("got %+v, %q", got, why)
			}
		})
	}
}

func TestMisnamed(t *testing.T) {
	ports := portsOf(Port{80, "http"}, Port{90, "90"}, Port{100, "80"})
	cases := map[string]struct{ ref, want string }{
		"by number":                {`{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/namespace: shop}, sectionName: "80"}`, ""},
		"by name":                  {"{kind: MeshService, labels: {kuma.io/display-name: backend}, sectionName: http}", ""},
		"a port without a name":    {"{kind: MeshService, labels: {kuma.io/display-name: backend}, sectionName: 90}", ""},
		"a number that is no name": {"{kind: MeshService, labels: {kuma.io/display-name: backend}, sectionName: 100}", "80"},
		"an object":                {"{kind: MeshService, name: backend, namespace: shop, sectionName: 100}", "80"},
		"an unknown service":       {"{kind: MeshService, name: cart, namespace: shop, sectionName: 100}", ""},
		"a tag":                    {"{kind: MeshService, name: backend_shop_svc_100}", ""},
		"other labels":             {"{kind: MeshService, labels: {team: a}, sectionName: 100}", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var r Ref
			if err := yaml.Unmarshal([]byte(c.ref), &r); err != nil {
				t.Fatal(err)
			}
			if _, got, misnamed := r.Misnamed(ports); got != c.want || misnamed != (c.want != "") {
				t.Errorf("got %q, %v", got, misnamed)
			}
		})
	}
}

func TestRemedy(t *testing.T) {
	const start, end = "add an entry for labels {kuma.io/display-name: backend, kuma.io/namespace: shop} and ", ", or for a MeshMultiZoneService"
	const universal = "add an entry for labels {kuma.io/display-name: backend} and "
	cases := map[string]struct {
		tag   string
		ports Ports
		want  string
	}{
		"the name of the port":     {"backend_shop_svc_80", portsOf(Port{80, "http"}), start + "sectionName: http" + end},
		"a port without a name":    {"backend_shop_svc_80", portsOf(Port{80, "80"}), start + `sectionName: "80"` + end},
		"nothing known":            {"backend_shop_svc_80", nil, start + `sectionName: the name of port 80, or "80" if it has none` + end},
		"two names":                {"backend_shop_svc_80", portsOf(Port{80, "http"}, Port{80, "web"}), start + "one for each sectionName of http, web" + end},
		"no such port":             {"backend_shop_svc_80", portsOf(Port{90, "grpc"}), start + "the sectionName of a port, which are grpc (port 90)" + end},
		"universal":                {"backend", nil, universal + "the sectionName of a port" + end},
		"universal, with one port": {"backend", portsOf(Port{80, "http"}), universal + "sectionName: http" + end},
		"universal, with two":      {"backend", portsOf(Port{80, "80"}, Port{90, "grpc"}), universal + "the sectionName of a port, which are 80, grpc (port 90)" + end},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (TagReference{Tag: c.tag}).Remedy(c.ports); got != c.want {
				t.Error(got)
			}
		})
	}
}
