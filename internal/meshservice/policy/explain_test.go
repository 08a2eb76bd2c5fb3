package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func TestExplain(t *testing.T) {
	here := demoApp(5000, "5000")
	old := tag("demo-app_kuma-demo_svc_5000")
	const local = "{localityAwareness: {localZone: {affinityTags: [{key: rack}]}}}"
	const whole = "{kind: MeshService, name: demo-app, namespace: kuma-demo}"
	const implied = "MeshTimeout kuma-system/a 0 no: targets the kuma.io/service demo-app_kuma-demo_svc_5000, and so port 5000 of the MeshService demo-app in namespace kuma-demo"
	route := func(ref string) string {
		return "kind: MeshHTTPRoute\nmetadata: {name: r}\nspec: {to: [{targetRef: " + ref + ", rules: [{default: {}}]}]}"
	}
	for name, c := range map[string]struct {
		policies string
		to       model.Destination
		want     []string
	}{
		"of others": {timeout("a", "1s", "{kind: MeshService, name: other}", "{kind: MeshService, name: other_kuma-demo_svc_5000}", "{kind: MeshService, labels: {team: x}}"), here, nil},
		"the mesh":  {timeout("a", "1s", "{kind: Mesh}"), here, []string{"MeshTimeout kuma-system/a 0 yes: targets every destination of the mesh"}},
		"a tag":     {timeout("a", "1s", legacy), old, []string{"MeshTimeout kuma-system/a 0 yes: targets the kuma.io/service demo-app_kuma-demo_svc_5000"}},
		"a tag and its MeshService": {timeout("a", "1s", legacy), here, []string{
			"MeshTimeout kuma-system/a 0 yes: targets the kuma.io/service demo-app_kuma-demo_svc_5000, and so port 5000 of the MeshService demo-app in namespace kuma-demo",
		}},
		"a tag in universal": {timeout("a", "1s", "{kind: MeshService, name: backend}"), service("backend", "", "west", 80, "80"), []string{
			"MeshTimeout kuma-system/a 0 yes: targets the kuma.io/service backend, and so the MeshService of the same service",
		}},
		"another port": {timeout("a", "1s", "{kind: MeshService, name: demo-app_kuma-demo_svc_80}"), here, []string{
			"MeshTimeout kuma-system/a 0 no: targets the kuma.io/service demo-app_kuma-demo_svc_80, which is port 80",
		}},
		"a section": {timeout("a", "1s", newStyle), here, []string{"MeshTimeout kuma-system/a 0 yes: targets section 5000 of each MeshService with its labels"}},
		"another section": {timeout("a", "1s", newStyle), demoApp(5000, "http"), []string{
			"MeshTimeout kuma-system/a 0 no: targets section 5000 of each MeshService with its labels, and this is section http",
		}},
		"a MeshService, of a tag": {timeout("a", "1s", newStyle, "{kind: MeshService, name: demo-app, namespace: kuma-demo}", "{kind: MeshService, labels: {kuma.io/display-name: demo-app, kuma.io/namespace: bank}}"), old, []string{
			"MeshTimeout kuma-system/a 1 no: targets the MeshService demo-app in namespace kuma-demo itself, not a kuma.io/service",
			"MeshTimeout kuma-system/a 0 no: targets each MeshService with its labels itself, not a kuma.io/service",
		}},
		"beaten": {together(timeout("a", "1s", "{kind: Mesh}"), timeout("b", "2s", newStyle)), here, []string{
			"MeshTimeout kuma-system/b 0 yes: targets section 5000 of each MeshService with its labels",
			"MeshTimeout kuma-system/a 0 no: targets every destination of the mesh, but spec.to[0] of kuma-system/b already sets the same fields",
		}},
		"not quite beaten": {together(said("MeshTimeout", "a", "{idleTimeout: 1s, connectionTimeout: 1s}", "{kind: Mesh}"), timeout("b", "2s", newStyle)), here, []string{
			"MeshTimeout kuma-system/b 0 yes: targets section 5000 of each MeshService with its labels",
			"MeshTimeout kuma-system/a 0 yes: targets every destination of the mesh",
		}},
		"nothing said": {said("MeshTimeout", "a", "{http: {}}", "{kind: Mesh}"), here, []string{"MeshTimeout kuma-system/a 0 no: targets every destination of the mesh, but sets no field"}},
		"a route stays": {together(timeout("z", "1s", legacy), route(legacy)), here, []string{
			"MeshHTTPRoute kuma-system/r 0 no: targets the kuma.io/service demo-app_kuma-demo_svc_5000, and a route for a tag does not apply to its MeshService; route the MeshService by its labels and sectionName: \"5000\"",
			"MeshTimeout kuma-system/z 0 yes: targets the kuma.io/service demo-app_kuma-demo_svc_5000, and so port 5000 of the MeshService demo-app in namespace kuma-demo",
		}},
		"a route stays, by the name of a port": {route(legacy), demoApp(5000, "http"), []string{
			"MeshHTTPRoute kuma-system/r 0 no: targets the kuma.io/service demo-app_kuma-demo_svc_5000, and a route for a tag does not apply to its MeshService; route the MeshService by its labels and sectionName: http",
		}},
		"a tag, beaten by its MeshService": {together(timeout("a", "1s", legacy), timeout("b", "2s", whole)), here, []string{
			"MeshTimeout kuma-system/b 0 yes: targets the MeshService demo-app in namespace kuma-demo",
			implied + ", but spec.to[0] of kuma-system/b, which targets the MeshService itself, already sets the same fields",
		}},
		"a tag, beaten by a section": {together(timeout("a", "1s", legacy), timeout("b", "2s", newStyle)), here, []string{
			"MeshTimeout kuma-system/b 0 yes: targets section 5000 of each MeshService with its labels",
			implied + ", but spec.to[0] of kuma-system/b, which targets the MeshService itself, already sets the same fields",
		}},
		"a tag, beaten in part": {together(said("MeshTimeout", "a", "{idleTimeout: 1s, connectionTimeout: 1s}", legacy), timeout("b", "2s", whole)), here, []string{
			"MeshTimeout kuma-system/b 0 yes: targets the MeshService demo-app in namespace kuma-demo",
			strings.Replace(implied, " no: ", " yes: ", 1) + "; spec.to[0] of kuma-system/b takes precedence, since it targets the MeshService itself",
		}},
		"balancing of a tag": {said("MeshLoadBalancingStrategy", "a", local, legacy), here, []string{
			"MeshLoadBalancingStrategy kuma-system/a 0 yes: targets the kuma.io/service demo-app_kuma-demo_svc_5000, and so port 5000 of the MeshService demo-app in namespace kuma-demo",
		}},
		"balancing of a tag, also over zones": {said("MeshLoadBalancingStrategy", "a", "{localityAwareness: {crossZone: {}}, loadBalancer: {type: Random}}", legacy), here, []string{
			"MeshLoadBalancingStrategy kuma-system/a 0 yes: targets the kuma.io/service demo-app_kuma-demo_svc_5000, and so port 5000 of the MeshService demo-app in namespace kuma-demo; crossZone does not apply there",
		}},
		"balancing of a tag, over zones only": {said("MeshLoadBalancingStrategy", "a", "{localityAwareness: {crossZone: {failover: [{to: {type: Any}}]}}}", legacy), here, []string{
			"MeshLoadBalancingStrategy kuma-system/a 0 no: targets the kuma.io/service demo-app_kuma-demo_svc_5000, and so port 5000 of the MeshService demo-app in namespace kuma-demo; crossZone does not apply there, and the entry sets nothing else",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			set := Compile(policiesIn(t, c.policies), onKubernetes)
			var got []string
			for _, d := range set.Explain(set.Class(cart()), c.to) {
				got = append(got, fmt.Sprintf("%s %s %d %s: %s", d.Kind, d.Policy, d.Entry, map[bool]string{true: "yes", false: "no"}[d.Applies], d.Why))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
