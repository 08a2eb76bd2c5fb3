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
	cases := map[string]struct {
		refs  []string
		port  uint16
		route bool
		want  []bool
	}{
		"a tag alone":                            {[]string{tag}, 0, true, []bool{false}},
		"its section beside it":                  {[]string{tag, byNumber}, 0, true, []bool{true, false}},
		"its section, before it":                 {[]string{byNumber, tag}, 0, true, []bool{false, true}},
		"one section for two":                    {[]string{tag, byNumber, tag}, 0, false, []bool{true, false, false}},
		"the port by its name, next to it":       {[]string{tag, byName}, 0, true, []bool{true, false}},
		"the port by its name, elsewhere":        {[]string{byName, tag}, 0, true, []bool{false, false}},
		"another port":                           {[]string{tag, otherPort}, 0, true, []bool{false, false}},
		"a route for all zones":                  {[]string{tag, multiZone}, 0, true, []bool{true, false}},
		"a route for another of all zones":       {[]string{tag, "{kind: MeshMultiZoneService, name: cart}"}, 0, true, []bool{false, false}},
		"all zones, where MeshServices count":    {[]string{tag, multiZone}, 0, false, []bool{false, false}},
		"a tag without a port":                   {[]string{universal, ofMachine}, 0, true, []bool{true, false}},
		"a tag without a port, which is another": {[]string{ofMachine, universal}, 80, true, []bool{false, false}},
		"a subset":                               {[]string{"{kind: MeshServiceSubset, name: backend}", ofMachine}, 0, true, []bool{false, false}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			refs := make([]Ref, len(c.refs))
			for i, text := range c.refs {
				if err := yaml.Unmarshal([]byte(text), &refs[i]); err != nil {
					t.Fatal(err)
				}
			}
			if got := Converted(refs, c.port, c.route); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestRemedy(t *testing.T) {
	cases := map[string]string{
		"demo-app_kuma-demo_svc_5000": `add an entry for labels {kuma.io/display-name: demo-app, kuma.io/namespace: kuma-demo} and sectionName: "5000", or for a MeshMultiZoneService`,
		"backend":                     `add an entry for labels {kuma.io/display-name: backend} and the sectionName of a port, or for a MeshMultiZoneService`,
	}
	for tag, want := range cases {
		if got := (TagReference{Tag: tag}).Remedy(); got != want {
			t.Errorf("%s: %s", tag, got)
		}
	}
}
