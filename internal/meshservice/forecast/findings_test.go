package forecast

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func parsed[P kumav1alpha1.Policy](t *testing.T, into P, spec string) kumav1alpha1.Policy {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: r, namespace: shop}\nspec: "+spec), into); err != nil {
		t.Fatal(err)
	}
	return into
}

func TestRoutesToLookAt(t *testing.T) {
	http := func(spec string) kumav1alpha1.Policy { return parsed(t, &kumav1alpha1.MeshHTTPRoute{}, spec) }
	cases := map[string]struct {
		policy kumav1alpha1.Policy
		mode   model.Mode
		want   []string
	}{
		"for a tag": {
			http(`{to: [{targetRef: {kind: MeshService, name: demo-app_kuma-demo_svc_5000}}]}`), model.Everywhere,
			[]string{"spec.to[0].targetRef"},
		},
		"for a tag, while nothing changes": {
			http(`{to: [{targetRef: {kind: MeshService, name: demo-app_kuma-demo_svc_5000}}]}`), model.Disabled, nil,
		},
		"for a tag, and for its MeshService": {
			http(`{to: [{targetRef: {kind: MeshService, name: a_shop_svc_80}, rules: [{default: {backendRefs: [{kind: MeshService, name: a_shop_svc_80}]}}]},
				{targetRef: {kind: MeshService, labels: {kuma.io/display-name: a, kuma.io/namespace: shop}, sectionName: 80}}]}`),
			model.Exclusive, nil,
		},
		"for a MeshService that sends to a tag": {
			http(`{to: [{targetRef: {kind: MeshService, name: a_shop_svc_80}},
				{targetRef: {kind: MeshService, labels: {kuma.io/display-name: a, kuma.io/namespace: shop}, sectionName: 80},
				rules: [{default: {backendRefs: [{kind: MeshService, name: a_shop_svc_80}]}}]}]}`),
			model.Everywhere, []string{"spec.to[1].rules[0].default.backendRefs[0]"},
		},
		"for a tag, and for all zones": {
			http(`{to: [{targetRef: {kind: MeshService, name: a_shop_svc_80}}, {targetRef: {kind: MeshMultiZoneService, name: a}}]}`),
			model.Everywhere, nil,
		},
		"for a section": {
			http(`{to: [{targetRef: {kind: MeshService, name: demo-app, sectionName: 5000}}]}`), model.Everywhere, nil,
		},
		"for labels": {
			http(`{to: [{targetRef: {kind: MeshService, labels: {kuma.io/display-name: demo-app}}}]}`), model.Exclusive, nil,
		},
		"for an object": {
			http(`{to: [{targetRef: {kind: MeshService, name: demo-app, namespace: kuma-demo}}]}`), model.Exclusive, nil,
		},
		"that sends to tags": {
			http(`{to: [{targetRef: {kind: Mesh}, rules: [{}, {default: {backendRefs: [{kind: MeshService, name: a, port: 80}, {kind: MeshService, name: b}]}}]}]}`),
			model.ReachableBackendRefs, []string{"spec.to[0].rules[1].default.backendRefs[1]"},
		},
		"that mirrors to tags": {
			http(`{to: [{targetRef: {kind: Mesh}, rules: [{default: {filters: [{type: RequestRedirect, requestRedirect: {}}, {type: RequestMirror, requestMirror: {backendRef: {kind: MeshService, name: b}}}, {type: RequestMirror, requestMirror: {backendRef: {kind: MeshService, name: a, port: 80}}}]}}]}]}`),
			model.Exclusive, []string{"spec.to[0].rules[0].default.filters[1].requestMirror.backendRef"},
		},
		"of connections": {
			parsed(t, &kumav1alpha1.MeshTCPRoute{}, `{to: [{targetRef: {kind: MeshService, name: backend}, rules: [{default: {backendRefs: [{kind: MeshServiceSubset, name: b, tags: {v: "1"}}, {kind: MeshService, name: c_shop_svc_80}]}}]}]}`),
			model.Exclusive, []string{"spec.to[0].targetRef", "spec.to[0].rules[0].default.backendRefs[1]"},
		},
		"what is no route": {
			parsed(t, &kumav1alpha1.MeshTimeout{}, `{to: [{targetRef: {kind: MeshService, name: backend}}]}`), model.Exclusive, nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range tagRouteFindings([]kumav1alpha1.Policy{c.policy}, c.mode, nil) {
				got = append(got, f.Field)
				if strings.Contains(f.Why, "no proxy reaches") != (c.mode == model.Exclusive) || f.Remedy == "" {
					t.Errorf("%s: %s; %s", f.Object, f.Why, f.Remedy)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The remedy calls the port as the Service does, also when its MeshService is not generated yet.
func TestRemedyNamesThePort(t *testing.T) {
	w := NewMeshState(read(t, &kumav1alpha1.Mesh{}, `{metadata: {name: default}}`), &corev1.ConfigMap{}, desired.ZoneInfo{Zone: "east"})
	w.Add(read(t, &corev1.Namespace{}, `{metadata: {name: shop, labels: {kuma.io/sidecar-injection: enabled}}}`))
	w.Add(read(t, &corev1.Service{}, `{metadata: {name: cart, namespace: shop}, spec: {clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], selector: {app: cart}, ports: [{port: 80, name: web}, {port: 90}]}}`))
	w.Add(parsed(t, &kumav1alpha1.MeshHTTPRoute{}, `{to: [{targetRef: {kind: MeshService, name: cart_shop_svc_80}}, {targetRef: {kind: MeshService, name: cart_shop_svc_90}}]}`))
	f, err := Compare(w, Scenario{Mode: model.Everywhere})
	if err != nil {
		t.Fatal(err)
	}
	const start, end = "add an entry for labels {kuma.io/display-name: cart, kuma.io/namespace: shop} and ", ", or for a MeshMultiZoneService"
	var got []string
	for _, r := range f.Routes {
		got = append(got, r.Remedy)
	}
	if diff := cmp.Diff([]string{start + "sectionName: web" + end, start + `sectionName: "90"` + end}, got); diff != "" {
		t.Error(diff)
	}
}
