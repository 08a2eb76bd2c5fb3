package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

func TestMeshServicesInBothForms(t *testing.T) {
	cases := map[string]struct {
		spec string
		want Mode
	}{
		"nothing said":                    {`{}`, ModeDisabled},
		"null":                            {`{meshServices: null}`, ModeDisabled},
		"Disabled":                        {`{meshServices: Disabled}`, ModeDisabled},
		"Everywhere":                      {`{meshServices: Everywhere}`, ModeEverywhere},
		"ReachableBackendRefs":            {`{meshServices: ReachableBackendRefs}`, ModeReachableBackendRefs},
		"ReachableBackends":               {`{meshServices: ReachableBackends}`, ModeReachableBackendRefs},
		"Exclusive":                       {`{meshServices: Exclusive}`, ModeExclusive},
		"Disabled in an object":           {`{meshServices: {mode: Disabled}}`, ModeDisabled},
		"Everywhere in an object":         {`{meshServices: {mode: Everywhere}}`, ModeEverywhere},
		"ReachableBackends in an object":  {`{meshServices: {mode: ReachableBackends}}`, ModeReachableBackendRefs},
		"ReachableBackendRefs, an object": {`{meshServices: {mode: ReachableBackendRefs}}`, ModeReachableBackendRefs},
		"Exclusive in an object":          {`{meshServices: {mode: Exclusive}}`, ModeExclusive},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mesh := &Mesh{}
			expectSameForm(t, tc.spec, &mesh.Spec)
			if got := mesh.Mode(); got != tc.want {
				t.Errorf("mode %s, want %s", got, tc.want)
			}
		})
	}
}

func TestMeshServicesOfNeitherForm(t *testing.T) {
	for _, text := range []string{`7`, `["Everywhere"]`, `true`, `{"mode": 7}`} {
		if err := json.Unmarshal([]byte(text), &MeshServices{}); err == nil {
			t.Errorf("%s is taken for a mode", text)
		}
	}
}

func TestReachableBackendsInEveryForm(t *testing.T) {
	all := ReachableBackendRef{Kind: MeshServiceKind, Labels: map[string]string{}}
	port := int32(5000)
	cart := ReachableBackendRef{Kind: MeshServiceKind, Name: "cart", Namespace: "shop", Port: &port}
	cases := map[string]struct {
		spec string
		want []ReachableBackendRef
		set  bool
	}{
		"nothing said":                  {`{}`, nil, false},
		"one object with empty labels":  {`{reachableBackendRefs: { kind: MeshService, labels: {} }}`, []ReachableBackendRef{all}, true},
		"one object with a name":        {`{reachableBackendRefs: {kind: MeshService, name: cart, namespace: shop, port: 5000}}`, []ReachableBackendRef{cart}, true},
		"a list of one":                 {`{reachableBackendRefs: [{kind: MeshService, labels: {}}]}`, []ReachableBackendRef{all}, true},
		"a list":                        {`{reachableBackendRefs: [{kind: MeshService, labels: {}}, {kind: MeshService, name: cart, namespace: shop, port: 5000}]}`, []ReachableBackendRef{all, cart}, true},
		"an empty list":                 {`{reachableBackendRefs: []}`, []ReachableBackendRef{}, true},
		"Kuma's spelling":               {`{reachableBackends: {refs: [{kind: MeshService, labels: {}}]}}`, []ReachableBackendRef{all}, true},
		"Kuma's spelling, none":         {`{reachableBackends: {refs: []}}`, []ReachableBackendRef{}, true},
		"Kuma's spelling, an empty one": {`{reachableBackends: {}}`, nil, true},
		"both spellings":                {`{reachableBackendRefs: [], reachableBackends: {refs: [{kind: MeshService, labels: {}}]}}`, []ReachableBackendRef{}, true},
		"text":                          {`{reachableBackendRefs: all}`, nil, true},
		"a number":                      {`{reachableBackendRefs: 7}`, nil, true},
		"an object of no kind":          {`{reachableBackendRefs: {labels: {}}}`, nil, true},
		"an empty object":               {`{reachableBackendRefs: {}}`, nil, true},
		"a list with an item of no kind": {
			`{reachableBackendRefs: [{kind: MeshService, labels: {}}, {name: cart}]}`, nil, true,
		},
		"a port in words":         {`{reachableBackendRefs: [{kind: MeshService, name: cart, port: http}]}`, nil, true},
		"a port beyond all ports": {`{reachableBackendRefs: {kind: MeshService, name: cart, port: 65536}}`, nil, true},
		"a field that is unknown": {`{reachableBackendRefs: {kind: MeshService, name: cart, label: {app: cart}}}`, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			proxying := &TransparentProxying{}
			expectSameForm(t, tc.spec, proxying)
			got, set := proxying.BackendRefs()
			if set != tc.set {
				t.Errorf("set is %t", set)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("refs (-want +got):\n%s", diff)
			}
			malformed := proxying.ReachableBackendRefs != nil && proxying.ReachableBackendRefs.Malformed != ""
			if want := tc.set && tc.want == nil && proxying.ReachableBackends == nil; malformed != want {
				t.Errorf("malformed is %t", malformed)
			}
		})
	}
	if _, set := (*TransparentProxying)(nil).BackendRefs(); set {
		t.Error("no transparent proxying lists backends")
	}
}

func TestSectionNameIsNumberOrText(t *testing.T) {
	cases := map[string]struct {
		ref     string
		want    *intstr.IntOrString
		section string
	}{
		"not said":  {`{kind: MeshService, name: demo-app_kuma-demo_svc_5000}`, nil, ""},
		"a number":  {`{kind: MeshService, labels: {kuma.io/display-name: demo-app}, sectionName: 5000}`, new(intstr.FromInt32(5000)), "5000"},
		"its text":  {`{kind: MeshService, labels: {kuma.io/display-name: demo-app}, sectionName: "5000"}`, new(intstr.FromString("5000")), "5000"},
		"a name":    {`{kind: MeshService, name: demo-app, sectionName: http}`, new(intstr.FromString("http")), "http"},
		"no labels": {`{kind: MeshService, labels: {}, sectionName: http}`, new(intstr.FromString("http")), "http"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ref := &ToTargetRef{}
			expectSameForm(t, tc.ref, ref)
			if diff := cmp.Diff(tc.want, ref.SectionName); diff != "" {
				t.Errorf("sectionName (-want +got):\n%s", diff)
			}
			if got := ref.Section(); got != tc.section {
				t.Errorf("section %q, want %q", got, tc.section)
			}
		})
	}
}

func TestPortIsNamedByItsNumber(t *testing.T) {
	if got := (Port{Port: 5000}).SectionName(); got != "5000" {
		t.Errorf("unnamed port is called %q", got)
	}
	if got := (MultiZonePort{Port: 5000, Name: "http"}).SectionName(); got != "http" {
		t.Errorf("port http is called %q", got)
	}
}

func FuzzBackendRefs(f *testing.F) {
	for _, seed := range []string{`{"kind":"MeshService","labels":{}}`, `[]`, `null`, `"all"`, `[{"kind":"MeshService","port":5000}]`, `[null]`, `{"kind":7}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		var first, second BackendRefs
		if err := first.UnmarshalJSON(data); err != nil {
			t.Fatalf("%s stops a decoder: %v", data, err)
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("%s cannot be written again: %v", data, err)
		}
		if err := second.UnmarshalJSON(written); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(second)
		if err != nil || string(again) != string(written) {
			t.Fatalf("%s became %s and then %s: %v", data, written, again, err)
		}
		if first.Malformed == "" && !cmp.Equal(first, second) {
			t.Fatalf("%s changed its meaning:\n%s", data, cmp.Diff(first, second))
		}
	})
}

// expectSameForm reads the text, and writes it again in the two ways that clients do.
func expectSameForm(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	for key, value := range want {
		if value == nil {
			delete(want, key)
		}
	}
	written, err := json.Marshal(into)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(written, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("written again (-want +got):\n%s", diff)
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(converted)
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	if err := json.Unmarshal(plain, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("converted (-want +got):\n%s", diff)
	}
}
