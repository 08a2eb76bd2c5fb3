package convert

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// A kind that Fairlead has is known, and those with entries are converted.
func TestKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kumav1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	policies := 0
	for kind := range scheme.KnownTypes(kumav1alpha1.GroupVersion) {
		object, err := scheme.New(kumav1alpha1.GroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		// Others of the group are those that every group has, such as ListOptions.
		if !strings.Contains(kind, "Mesh") && kind != kumav1alpha1.DataplaneKind && kind != kumav1alpha1.ZoneIngressKind || strings.HasSuffix(kind, "List") {
			continue
		}
		_, isPolicy := object.(kumav1alpha1.Policy)
		if isPolicy {
			policies++
		}
		if hasTo.Has(kind) != isPolicy || hasNoTo.Has(kind) == isPolicy {
			t.Errorf("%s: converted %v, nothing to convert %v", kind, hasTo.Has(kind), hasNoTo.Has(kind))
		}
	}
	if policies < 6 {
		t.Errorf("there are %d policies", policies)
	}
}

// No policy is passed over, however it is written: its entries are converted, or listed with what to do.
func TestNoPolicyIsPassedOver(t *testing.T) {
	const entries = "[{targetRef: {kind: MeshService, name: till_shop_svc_80}, default: {connectionTimeout: 1s}}]"
	const policy = "{type: MeshTimeout, mesh: default, name: a, spec: {to: " + entries + "}}"
	kubernetes := func(spec string) string {
		return "apiVersion: kuma.io/v1alpha1\nkind: MeshTimeout\nmetadata: {name: a}\n" + spec
	}
	for name, c := range map[string]struct {
		in   string
		want string
	}{
		"a list of kumactl":                 {"total: 1\nitems: [" + policy + "]\nnext: null\n", "Added"},
		"an array":                          {"[" + policy + "]\n", "Added"},
		"an unknown kind in an array":       {`[{"type": "MeshTeleport", "mesh": "default", "name": "a"}]`, "UnknownKind"},
		"an unknown kind in kumactl's list": {"items: [{type: TrafficRoute, mesh: default, name: a, destinations: []}]\ntotal: 1\n", "UnknownKind"},
		"spec.to of a merge":                {kubernetes("x: &x {to: " + entries + "}\nspec: {<<: *x}\n"), "NeedsPerson"},
		"spec.to of one of several merges":  {kubernetes("x: &x {to: " + entries + "}\ny: &y {from: []}\nspec: {<<: [*y, *x]}\n"), "NeedsPerson"},
		"spec.to of a merge in a merge":     {kubernetes("x: &x {to: " + entries + "}\ny: &y {<<: *x}\nspec: {<<: *y}\n"), "NeedsPerson"},
		"spec of a merge":                   {kubernetes("x: &x {spec: {to: " + entries + "}}\n<<: *x\n"), "NeedsPerson"},
		"spec of an alias":                  {kubernetes("x: &x {to: " + entries + "}\nspec: *x\n"), "NeedsPerson"},
		"spec.to of a merge in itself":      {kubernetes("spec: &x {<<: [*x]}\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, report, err := Convert([]byte(c.in), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range report.Findings {
				got = append(got, string(f.Action))
				if f.Action == NeedsPerson && !strings.Contains(f.Why, "is a YAML alias or merge: write the list out there") {
					t.Errorf("it says %q", f.Why)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v", report.Findings)
			}
		})
	}
}
