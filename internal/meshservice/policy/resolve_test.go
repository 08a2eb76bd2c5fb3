package policy

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

const (
	legacy       = "{kind: MeshService, name: demo-app_kuma-demo_svc_5000}"
	newStyle     = `{kind: MeshService, labels: {kuma.io/display-name: demo-app, kuma.io/namespace: kuma-demo}, sectionName: 5000}`
	newStyleText = `{kind: MeshService, labels: {kuma.io/display-name: demo-app, kuma.io/namespace: kuma-demo}, sectionName: "5000"}`
)

// Which destinations a targetRef is for, as the design has it.
func TestWhatATargetRefIsFor(t *testing.T) {
	old := tag("demo-app_kuma-demo_svc_5000")
	here, elsewhere := demoApp(5000, "5000"), service("demo-app", "kuma-demo", "west", 5000, "5000")
	universal, universalWest := service("backend", "", "east", 80, "80"), service("backend", "", "west", 80, "http")
	zones := multiZone("demo-app", 80, "80")
	renamed := demoApp(5000, "http")
	claimed := service("thief", "kuma-demo", "east", 5000, "5000")
	claimed.Labels["kuma.io/display-name"] = "demo-app"
	unlabelled := demoApp(5000, "5000")
	unlabelled.Labels = nil

	every := []string{"MeshTimeout", "MeshRetry", "MeshCircuitBreaker", "MeshHTTPRoute", "MeshTCPRoute"}
	plain, routes := every[:3], every[3:]
	confs := map[string]string{
		"MeshTimeout": "default: {connectionTimeout: 1s}", "MeshRetry": "default: {tcp: {maxConnectAttempt: 2}}",
		"MeshCircuitBreaker": "default: {connectionLimits: {maxRequests: 3}}",
		"MeshHTTPRoute":      "rules: [{default: {}}]", "MeshTCPRoute": "rules: [{default: {}}]",
	}
	for name, c := range map[string]struct {
		ref   string
		kinds []string
		to    model.Destination
		want  bool
	}{
		"the mesh: a tag":           {"{kind: Mesh}", every, old, true},
		"the mesh: a MeshService":   {"{kind: Mesh}", every, here, true},
		"the mesh: several zones'":  {"{kind: Mesh}", every, zones, true},
		"old: its tag":              {legacy, every, old, true},
		"old: another tag":          {legacy, every, tag("demo-app_kuma-demo_svc_5001"), false},
		"old: its MeshService":      {legacy, plain, here, true},
		"old: one of another zone":  {legacy, plain, elsewhere, true},
		"old: by number, not name":  {legacy, plain, renamed, true},
		"old: another port":         {legacy, plain, demoApp(5001, "5000"), false},
		"old: another namespace":    {legacy, plain, service("demo-app", "bank", "east", 5000, "5000"), false},
		"old: another name":         {legacy, plain, service("demo", "kuma-demo", "east", 5000, "5000"), false},
		"old: by label only":        {legacy, plain, claimed, false},
		"old: not several zones'":   {legacy, every, multiZone("demo-app", 5000, "5000"), false},
		"an old route: MeshService": {legacy, routes, here, false},
		"an old route: synced one":  {legacy, routes, elsewhere, false},
		"old, with a section":       {"{kind: MeshService, name: demo-app_kuma-demo_svc_5000, sectionName: http}", every, old, false},
		"old, with a namespace":     {"{kind: MeshService, name: demo-app_kuma-demo_svc_5000, namespace: bank}", plain, here, true},

		"new: not the tag":           {newStyle, every, old, false},
		"new: its MeshService":       {newStyle, every, here, true},
		"new: one of another zone":   {newStyle, every, elsewhere, true},
		"new: a section in quotes":   {newStyleText, every, here, true},
		"new: by name, not number":   {newStyle, every, renamed, false},
		"new: by the port's name":    {"{kind: MeshService, labels: {kuma.io/display-name: demo-app}, sectionName: http}", every, renamed, true},
		"new: the name of another":   {newStyle, every, claimed, false},
		"new: made by hand":          {newStyle, every, unlabelled, true},
		"new: not several zones'":    {newStyle, every, multiZone("demo-app", 5000, "5000"), false},
		"labels: every port":         {"{kind: MeshService, labels: {kuma.io/display-name: demo-app}}", every, renamed, true},
		"labels: Kuma's namespace":   {"{kind: MeshService, labels: {k8s.kuma.io/namespace: kuma-demo}}", every, elsewhere, true},
		"labels: any":                {"{kind: MeshService, labels: {team: demo-apps}}", every, elsewhere, true},
		"labels: others":             {"{kind: MeshService, labels: {team: bank}}", every, here, false},
		"labels: one zone":           {"{kind: MeshService, labels: {kuma.io/zone: west}}", every, here, false},
		"labels: none":               {"{kind: MeshService, labels: {}}", every, here, true},
		"labels: none, not the tag":  {"{kind: MeshService, labels: {}}", every, old, false},
		"labels and a name":          {"{kind: MeshService, name: other, namespace: kuma-demo, labels: {team: demo-apps}}", every, here, false},
		"name: every port":           {"{kind: MeshService, name: demo-app, namespace: kuma-demo}", every, renamed, true},
		"name: the own zone's":       {"{kind: MeshService, name: demo-app, namespace: kuma-demo}", every, elsewhere, false},
		"name: not the tag":          {"{kind: MeshService, name: demo-app, namespace: kuma-demo}", every, old, false},
		"name: no namespace":         {"{kind: MeshService, name: demo-app, sectionName: 5000}", every, here, false},
		"name: the policy's own":     {"{kind: MeshService, name: demo-app, sectionName: 5000}", every, service("demo-app", "kuma-system", "east", 5000, "5000"), true},
		"neither name nor labels":    {"{kind: MeshService}", every, here, false},
		"a subset":                   {"{kind: MeshServiceSubset, name: demo-app_kuma-demo_svc_5000, tags: {a: b}}", every, old, false},
		"several zones': its name":   {"{kind: MeshMultiZoneService, name: demo-app}", every, zones, true},
		"several zones': section":    {"{kind: MeshMultiZoneService, name: demo-app, sectionName: 80}", every, zones, true},
		"several zones': another":    {"{kind: MeshMultiZoneService, name: demo-app, sectionName: 81}", every, zones, false},
		"several zones': labels":     {"{kind: MeshMultiZoneService, labels: {team: demo-apps}}", every, zones, true},
		"several zones': other kind": {"{kind: MeshMultiZoneService, name: demo-app, namespace: kuma-demo}", every, here, false},

		"universal: its tag":                  {"{kind: MeshService, name: backend}", every, tag("backend"), true},
		"universal: its MeshService":          {"{kind: MeshService, name: backend}", plain, universal, true},
		"universal: one of another zone":      {"{kind: MeshService, name: backend}", plain, universalWest, true},
		"universal: a route's MeshService":    {"{kind: MeshService, name: backend}", routes, universal, false},
		"universal: one in a namespace":       {"{kind: MeshService, name: backend}", plain, service("backend", "shop", "east", 80, "80"), false},
		"universal: a section, the tag":       {"{kind: MeshService, name: backend, sectionName: 80}", every, tag("backend"), false},
		"universal: a section":                {"{kind: MeshService, name: backend, sectionName: 80}", every, universal, true},
		"universal: another section":          {"{kind: MeshService, name: backend, sectionName: 81}", every, universal, false},
		"universal: a section, elsewhere":     {"{kind: MeshService, name: backend, sectionName: http}", every, universalWest, false},
		"universal: labels and section":       {"{kind: MeshService, labels: {kuma.io/display-name: backend}, sectionName: http}", every, universalWest, true},
		"universal: with an underscore":       {"{kind: MeshService, name: my_backend}", every, tag("my_backend"), true},
		"universal: the tag of a gone prefix": {"{kind: MeshService, name: backend}", every, tag("backend-2"), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range c.kinds {
				text := "kind: " + kind + "\nmetadata: {name: it}\nspec: {to: [{targetRef: " + c.ref + ", " + confs[kind] + "}]}"
				set := Compile(policiesIn(t, text), onKubernetes)
				got := set.Resolve(set.Class(cart()), c.to)
				if applies := len(got.Decisions) == 1 && got.Decisions[0].Applies; applies != c.want {
					t.Errorf("%s applies: %v, want %v: %+v", kind, applies, c.want, got.Decisions)
				}
				if empty := got.Fingerprint() == effectiveOf(nil).Fingerprint(); empty == c.want {
					t.Errorf("%s has an effect: %v", kind, !empty)
				}
			}
		})
	}
}

// What counts when several speak, and what one leaves to the next.
func TestResolve(t *testing.T) {
	here := demoApp(5000, "5000")
	whole := "{kind: MeshService, name: demo-app, namespace: kuma-demo}"
	const balancing = `{localityAwareness: {localZone: {affinityTags: [{key: rack}]}, crossZone: {failover: [{to: {type: Any}}]}}, loadBalancer: {type: Random}}`
	for name, c := range map[string]struct {
		policies string
		to       model.Destination
		want     string
	}{
		"a section before a service":       {together(timeout("a", "1s", whole), timeout("b", "2s", newStyle)), here, `{"timeout":{"connectionTimeout":"2s"}}`},
		"a service before the mesh":        {together(timeout("a", "1s", "{kind: Mesh}"), timeout("b", "2s", whole)), here, `{"timeout":{"connectionTimeout":"2s"}}`},
		"a tag before the mesh":            {together(timeout("a", "1s", "{kind: Mesh}"), timeout("b", "2s", legacy)), tag("demo-app_kuma-demo_svc_5000"), `{"timeout":{"connectionTimeout":"2s"}}`},
		"a section before a tag":           {together(timeout("a", "1s", legacy), timeout("b", "2s", newStyle)), here, `{"timeout":{"connectionTimeout":"2s"}}`},
		"a service before a tag":           {together(timeout("a", "1s", legacy), timeout("b", "2s", whole)), here, `{"timeout":{"connectionTimeout":"2s"}}`},
		"a service by labels before a tag": {together(timeout("a", "1s", legacy), timeout("b", "2s", "{kind: MeshService, labels: {kuma.io/display-name: demo-app}}")), here, `{"timeout":{"connectionTimeout":"2s"}}`},
		"a service before a later entry for a tag": {
			said("MeshTimeout", "a", "{connectionTimeout: 2s}", whole) + "\n  - {targetRef: " + legacy + ", default: {connectionTimeout: 1s}}", here, `{"timeout":{"connectionTimeout":"2s"}}`,
		},
		"a service before a tag of nearer proxies": {
			together("kind: MeshTimeout\nmetadata: {name: a}\nspec: {targetRef: {kind: Dataplane, name: cart-1, namespace: shop}, to: [{targetRef: "+legacy+", default: {connectionTimeout: 1s}}]}", timeout("b", "2s", whole)),
			here, `{"timeout":{"connectionTimeout":"2s"}}`,
		},
		"a service, and what it leaves open a tag": {
			together(said("MeshTimeout", "a", "{connectionTimeout: 1s, idleTimeout: 3s}", legacy), timeout("b", "2s", whole)), here, `{"timeout":{"connectionTimeout":"2s","idleTimeout":"3s"}}`,
		},
		"a tag before the mesh, as a MeshService": {together(timeout("a", "1s", "{kind: Mesh}"), timeout("b", "2s", legacy)), here, `{"timeout":{"connectionTimeout":"2s"}}`},
		"a service before a tag without a port": {
			together(timeout("a", "1s", "{kind: MeshService, name: backend}"), timeout("b", "2s", "{kind: MeshService, labels: {kuma.io/display-name: backend}}")),
			service("backend", "", "east", 80, "80"), `{"timeout":{"connectionTimeout":"2s"}}`,
		},
		"the first name":  {together(timeout("b", "2s", whole), timeout("a", "1s", whole)), here, `{"timeout":{"connectionTimeout":"1s"}}`},
		"the later entry": {said("MeshTimeout", "a", "{connectionTimeout: 1s}", whole) + "\n  - {targetRef: " + whole + ", default: {connectionTimeout: 2s}}", here, `{"timeout":{"connectionTimeout":"2s"}}`},
		"the first namespace": {
			together(timeout("a", "1s", legacy),
				"kind: MeshTimeout\nmetadata: {name: a, namespace: kuma-demo}\nspec: {to: [{targetRef: "+legacy+", default: {connectionTimeout: 2s}}]}"),
			here, `{"timeout":{"connectionTimeout":"2s"}}`,
		},
		"who is closer to the proxy, of the same destination": {
			together(timeout("a", "1s", "{kind: Mesh}"),
				"kind: MeshTimeout\nmetadata: {name: b}\nspec: {targetRef: {kind: MeshSubset, tags: {version: \"1\"}}, to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 2s}}]}"),
			here, `{"timeout":{"connectionTimeout":"2s"}}`,
		},
		"who is closer to the destination, before that": {
			together(timeout("a", "1s", whole),
				"kind: MeshTimeout\nmetadata: {name: b}\nspec: {targetRef: {kind: Dataplane, name: cart-1, namespace: shop}, to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 2s}}]}"),
			here, `{"timeout":{"connectionTimeout":"1s"}}`,
		},
		"what one leaves open": {
			together(said("MeshTimeout", "a", "{idleTimeout: 0s, http: {requestTimeout: 3s}}", newStyle),
				said("MeshTimeout", "b", "{connectionTimeout: 1s, idleTimeout: 2s, http: {requestTimeout: 5s, streamIdleTimeout: 7s}}", "{kind: Mesh}")),
			here, `{"timeout":{"connectionTimeout":"1s","idleTimeout":"0s","http":{"requestTimeout":"3s","streamIdleTimeout":"7s"}}}`,
		},
		"lists are not mixed": {
			together(said("MeshRetry", "a", "{http: {retryOn: [5xx], numRetries: 0}}", newStyle), said("MeshRetry", "b", "{http: {retryOn: [Reset], numRetries: 4}}", "{kind: Mesh}")),
			here, `{"retry":{"http":{"numRetries":0,"retryOn":["5xx"]}}}`,
		},
		"false is said too": {
			together(said("MeshCircuitBreaker", "a", "{outlierDetection: {disabled: false}}", newStyle), said("MeshCircuitBreaker", "b", "{outlierDetection: {disabled: true, interval: 5s}}", "{kind: Mesh}")),
			here, `{"circuitBreaker":{"outlierDetection":{"disabled":false,"interval":"5s"}}}`,
		},
		"balancing of a tag": {
			said("MeshLoadBalancingStrategy", "a", balancing, legacy), tag("demo-app_kuma-demo_svc_5000"),
			`{"loadBalancing":{"localityAwareness":{"localZone":{"affinityTags":[{"key":"rack"}]},"crossZone":{"failover":[{"to":{"type":"Any"}}]}},"loadBalancer":{"type":"Random"}}}`,
		},
		"balancing of a tag, as a MeshService": {
			said("MeshLoadBalancingStrategy", "a", balancing, legacy), here,
			`{"loadBalancing":{"localityAwareness":{"localZone":{"affinityTags":[{"key":"rack"}]}},"loadBalancer":{"type":"Random"}}}`,
		},
		"balancing of a tag in universal, as a MeshService": {
			said("MeshLoadBalancingStrategy", "a", balancing, "{kind: MeshService, name: backend}"), service("backend", "", "west", 80, "80"),
			`{"loadBalancing":{"localityAwareness":{"localZone":{"affinityTags":[{"key":"rack"}]}},"loadBalancer":{"type":"Random"}}}`,
		},
		"balancing of a tag without localZone": {
			said("MeshLoadBalancingStrategy", "a", "{loadBalancer: {type: Random}, hashPolicies: [{type: Connection}]}", legacy), here,
			`{"loadBalancing":{"loadBalancer":{"type":"Random"},"hashPolicies":[{"type":"Connection"}]}}`,
		},
		"balancing of a tag without locality": {
			said("MeshLoadBalancingStrategy", "a", "{localityAwareness: {disabled: true, crossZone: {failover: [{to: {type: Any}}]}}}", legacy), here,
			`{"loadBalancing":{"localityAwareness":{"disabled":true}}}`,
		},
		"balancing of a tag over zones only": {
			said("MeshLoadBalancingStrategy", "a", "{localityAwareness: {crossZone: {failover: [{to: {type: Any}}]}}}", legacy), here, `{}`,
		},
		"balancing of a section": {
			said("MeshLoadBalancingStrategy", "a", "{loadBalancer: {type: Random}}", newStyle), here, `{"loadBalancing":{"loadBalancer":{"type":"Random"}}}`,
		},
		"balancing of the mesh": {
			said("MeshLoadBalancingStrategy", "a", "{loadBalancer: {type: Random}}", "{kind: Mesh}"), here, `{"loadBalancing":{"loadBalancer":{"type":"Random"}}}`,
		},
		"what is said of clients": {
			"kind: MeshTimeout\nmetadata: {name: a}\nspec: {from: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 1s}}], rules: [{default: {connectionTimeout: 1s}}]}", here, `{}`,
		},
		"a TCP route, the first": {
			together("kind: MeshTCPRoute\nmetadata: {name: a, namespace: shop}\nspec: {to: [{targetRef: {kind: Mesh}, rules: [{default: {backendRefs: [{kind: MeshService, name: x}]}}]}]}",
				"kind: MeshTCPRoute\nmetadata: {name: b, namespace: shop}\nspec: {to: [{targetRef: "+whole+", rules: [{default: {backendRefs: [{kind: MeshService, name: \"y\"}]}}]}]}"),
			here, `{"tcpRoute":{"namespace":"shop","backendRefs":[{"kind":"MeshService","name":"y"}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := Compile(policiesIn(t, c.policies), onKubernetes)
			got, err := json.Marshal(set.Resolve(set.Class(cart()), c.to))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
