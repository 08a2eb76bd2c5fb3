package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

func TestServices(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: shop}\n"
	const meshService = "apiVersion: kuma.io/v1alpha1\nkind: MeshService\n"
	for name, c := range map[string]struct {
		text, namespace string
		want            []successor.Port
		universal       []successor.Port
	}{
		"a name, and a number":   {service + "spec: {ports: [{port: 80, name: http}, {port: 90}]}", "", []successor.Port{{Number: 80, Name: "http"}, {Number: 90, Name: "90"}}, nil},
		"not of TCP":             {service + "spec: {ports: [{port: 80, name: dns, protocol: UDP}]}", "", nil, nil},
		"an alias of a name":     {service + "spec: {type: ExternalName, ports: [{port: 80, name: http}]}", "", nil, nil},
		"in the namespace of -n": {"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80, name: http}]}", "shop", []successor.Port{{Number: 80, Name: "http"}}, nil},
		"a MeshService": {
			service + "spec: {ports: [{port: 80, name: web}]}\n---\n" + meshService + "metadata: {name: a, namespace: shop}\nspec: {ports: [{port: 80, name: http}]}", "",
			[]successor.Port{{Number: 80, Name: "http"}}, nil,
		},
		"one that claims a name": {meshService + "metadata: {name: b, namespace: bank, labels: {kuma.io/display-name: a, kuma.io/namespace: shop}}\nspec: {ports: [{port: 80}]}", "", nil, nil},
		"one of another zone": {
			meshService + "metadata: {name: b, namespace: kuma-system, labels: {kuma.io/display-name: a, kuma.io/namespace: shop, kuma.io/zone: west}}\nspec: {ports: [{port: 80}]}", "",
			[]successor.Port{{Number: 80, Name: "80"}}, nil,
		},
		"one of universal, in a cluster": {
			meshService + "metadata: {name: a.default, namespace: kuma-system, labels: {kuma.io/display-name: a}}\nspec: {ports: [{port: 80, name: http}]}", "",
			nil, []successor.Port{{Number: 80, Name: "http"}},
		},
		"one of universal, in a file": {"type: MeshService\nname: a\nspec: {ports: [{port: 80, name: http}]}", "", nil, []successor.Port{{Number: 80, Name: "http"}}},
	} {
		t.Run(name, func(t *testing.T) {
			services := NewServices("kuma-system")
			if _, err := services.Read([]byte(c.text), c.namespace); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, services.Ports("a", "shop")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.universal, services.Ports("a", "")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestServicesRefuse(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no namespace": {"a: b\n---\n\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n", "document 2, line 4: Service a has no namespace: write it, or give -n"},
		"not YAML":     {"a: [\n", "document 1, line 1: did not find expected node content: correct the YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewServices("kuma-system").Read([]byte(c.text), ""); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
