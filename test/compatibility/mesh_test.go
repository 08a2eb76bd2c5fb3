package compatibility

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// mesh is an object of the mesh with its spec written in YAML's flow style.
func mesh(kind, name, spec string) string {
	namespace := ", namespace: default"
	if kind == kumav1alpha1.MeshKind {
		namespace = ""
	}
	return fmt.Sprintf("apiVersion: kuma.io/v1alpha1\nkind: %s\nmetadata: {name: %s%s}\nspec: %s\n", kind, name, namespace, spec)
}

func to(kind, entry string) string { return mesh(kind, "refused", "{to: ["+entry+"]}") }

func TestStoryInvalidMeshObjectsAreRefused(t *testing.T) {
	mode := func(mode string) string { return mesh("Mesh", "refused", "{meshServices: "+mode+"}") }
	timeout := func(conf string) string {
		return to("MeshTimeout", "{targetRef: {kind: Mesh}, default: "+conf+"}")
	}
	target := func(ref string) string { return to("MeshTimeout", "{targetRef: "+ref+"}") }
	ports := func(ports string) string { return mesh("MeshService", "refused", "{ports: "+ports+"}") }
	inbound := func(inbound string) string {
		return mesh("Dataplane", "refused", "{networking: {address: 10.0.0.1, inbound: ["+inbound+"]}}")
	}
	const conf = "spec.to[0].default"
	cases := map[string]struct{ object, field, because string }{
		"mode that is unknown":          {mode(`Sometimes`), "spec.meshServices", `"Everywhere"`},
		"mode in small letters":         {mode(`everywhere`), "spec.meshServices", `"Everywhere"`},
		"mode empty":                    {mode(`""`), "spec.meshServices", `"Everywhere"`},
		"mode as a number":              {mode(`1`), "spec.meshServices", `"Everywhere"`},
		"mode as a truth":               {mode(`true`), "spec.meshServices", `"Everywhere"`},
		"modes in a list":               {mode(`[Everywhere]`), "spec.meshServices", `"Everywhere"`},
		"mode object, unknown mode":     {mode(`{mode: Sometimes}`), "spec.meshServices", `"Everywhere"`},
		"mode object, unknown key":      {mode(`{modes: Everywhere}`), "spec.meshServices", `"Everywhere"`},
		"mode object, one key too many": {mode(`{mode: Everywhere, except: cart}`), "spec.meshServices", `"Everywhere"`},
		"mode object, nothing in it":    {mode(`{}`), "spec.meshServices", `"Everywhere"`},
		"locality in words":             {mesh("Mesh", "refused", `{routing: {localityAwareLoadBalancing: "yes"}}`), "spec.routing.localityAwareLoadBalancing", "boolean"},
		"name of a Mesh with a dot":     {mesh("Mesh", "east.mesh", `{}`), "metadata.name", "at most 63"},
		"name of a Mesh too long":       {mesh("Mesh", strings.Repeat("m", 64), `{}`), "metadata.name", "at most 63"},

		"port twice":                {ports(`[{port: 80}, {port: 81}, {port: 80, name: http}]`), "spec.ports", "remove the second"},
		"port zero":                 {ports(`[{port: 0}]`), "spec.ports[0].port", "greater than or equal to 1"},
		"port beyond all ports":     {ports(`[{port: 65536}]`), "spec.ports[0].port", "less than or equal to 65535"},
		"port not said":             {ports(`[{name: http}]`), "spec.ports[0].port", "Required value"},
		"port in words":             {ports(`[{port: http}]`), "spec.ports[0].port", "integer"},
		"section name twice":        {ports(`[{port: 80, name: http}, {port: 81, name: http}]`), "spec.ports", "same name another name"},
		"section named as a number": {ports(`[{port: 80, name: "81"}, {port: 81}]`), "spec.ports", "named by its number"},
		"port of several zones twice": {
			mesh("MeshMultiZoneService", "refused", `{selector: {meshService: {matchLabels: {a: b}}}, ports: [{port: 80}, {port: 80}]}`),
			"spec.ports", "remove the second",
		},
		"several zones without ports": {
			mesh("MeshMultiZoneService", "refused", `{selector: {meshService: {matchLabels: {a: b}}}, ports: []}`),
			"spec.ports", "at least 1",
		},
		"template empty":    {mesh("HostnameGenerator", "refused", `{template: ""}`), "spec.template", "at least 1"},
		"template not said": {mesh("HostnameGenerator", "refused", `{selector: {}}`), "spec.template", "Required value"},

		"inbound beyond all ports":  {inbound(`{port: 70000}`), "spec.networking.inbound[0].port", "less than or equal to 65535"},
		"inbound in another state":  {inbound(`{port: 80, state: Sleeping}`), "spec.networking.inbound[0].state", `"NotReady"`},
		"inbound without a port":    {inbound(`{name: http}`), "spec.networking.inbound[0].port", "Required value"},
		"ingress beyond all ports":  {mesh("ZoneIngress", "refused", `{networking: {port: 70000}}`), "spec.networking.port", "less than or equal to 65535"},
		"reachable by another kind": {mesh("Dataplane", "refused", `{networking: {transparentProxying: {reachableBackends: {refs: [{kind: Service}]}}}}`), "reachableBackends.refs[0].kind", `"MeshService"`},

		"target of another kind":          {target(`{kind: Service, name: a}`), "spec.to[0].targetRef.kind", `"MeshService"`},
		"target of no kind":               {target(`{name: a}`), "spec.to[0].targetRef.kind", "Required value"},
		"section that is neither":         {target(`{kind: MeshService, name: a, sectionName: true}`), "spec.to[0].targetRef.sectionName", "integer,string"},
		"proxies of another kind":         {mesh("MeshTimeout", "refused", `{targetRef: {kind: Pod}}`), "spec.targetRef.kind", `"Dataplane"`},
		"timeout negative":                {timeout(`{connectionTimeout: -1s}`), conf + ".connectionTimeout", "not negative"},
		"timeout in words":                {timeout(`{http: {requestTimeout: 5 minutes}}`), conf + ".http.requestTimeout", "must be a duration"},
		"timeout without unit":            {timeout(`{http: {requestTimeout: "15"}}`), conf + ".http.requestTimeout", "must be a duration"},
		"timeout as number":               {timeout(`{idleTimeout: 15}`), conf + ".idleTimeout", "must be of type string"},
		"timeout beyond all ages":         {timeout(`{idleTimeout: 99999999h}`), conf + ".idleTimeout", "must be a duration"},
		"timeout misspelt":                {timeout(`{http: {requestTimeouts: 15s}}`), conf + ".http.requestTimeouts", "unknown field"},
		"retries negative":                {to("MeshRetry", `{targetRef: {kind: Mesh}, default: {http: {numRetries: -1}}}`), conf + ".http.numRetries", "greater than or equal to 0"},
		"ejection of more than all":       {to("MeshCircuitBreaker", `{targetRef: {kind: Mesh}, default: {outlierDetection: {maxEjectionPercent: 101}}}`), conf + ".outlierDetection.maxEjectionPercent", "less than or equal to 100"},
		"load balancer of another way":    {to("MeshLoadBalancingStrategy", `{targetRef: {kind: Mesh}, default: {loadBalancer: {type: Sticky}}}`), conf + ".loadBalancer.type", `"LeastRequest"`},
		"path compared in another way":    {to("MeshHTTPRoute", `{targetRef: {kind: Mesh}, rules: [{matches: [{path: {type: Glob, value: /a}}]}]}`), "spec.to[0].rules[0].matches[0].path.type", `"PathPrefix"`},
		"share of traffic below nothing":  {to("MeshTCPRoute", `{targetRef: {kind: Mesh}, rules: [{default: {backendRefs: [{kind: MeshService, name: a, weight: -1}]}}]}`), "spec.to[0].rules[0].default.backendRefs[0].weight", "greater than or equal to 0"},
		"affinity that weighs nothing":    {to("MeshLoadBalancingStrategy", `{targetRef: {kind: Mesh}, default: {localityAwareness: {localZone: {affinityTags: [{key: a, weight: 0}]}}}}`), conf + ".localityAwareness.localZone.affinityTags[0].weight", "greater than or equal to 1"},
		"failover to another kind":        {to("MeshLoadBalancingStrategy", `{targetRef: {kind: Mesh}, default: {localityAwareness: {crossZone: {failover: [{to: {type: Some}}]}}}}`), conf + ".localityAwareness.crossZone.failover[0].to.type", `"AnyExcept"`},
		"several rules for a connection":  {to("MeshTCPRoute", `{targetRef: {kind: Mesh}, rules: [{default: {}}, {default: {}}]}`), "spec.to[0].rules", "at most 1"},
		"backend beyond all ports":        {to("MeshTCPRoute", `{targetRef: {kind: Mesh}, rules: [{default: {backendRefs: [{kind: MeshService, name: a, port: 65536}]}}]}`), "spec.to[0].rules[0].default.backendRefs[0].port", "less than or equal to 65535"},
		"retry that waits less than none": {to("MeshRetry", `{targetRef: {kind: Mesh}, default: {grpc: {backOff: {baseInterval: -5s}}}}`), conf + ".grpc.backOff.baseInterval", "not negative"},
	}
	c := server(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), parse(t, tc.object), client.DryRunAll)
			expectRefusal(t, err, tc.field, tc.because)
		})
	}
}

func TestStoryLongestNameOfAMeshIsAccepted(t *testing.T) {
	apply(t, server(t), parse(t, mesh("Mesh", strings.Repeat("m", 63), `{}`)))
}

// What users wrote is read through Go types, and the fragments of the design are given back as they were. Those that
// say everything have parts that the types do not declare: they are kept in the cluster only.
func TestStoryMeshExamplesKeepTheirFormInGo(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kumav1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	eachFile(t, "accepted", func(t *testing.T, file string) {
		example := read(t, file)
		if example.GroupVersionKind().GroupVersion() != kumav1alpha1.GroupVersion {
			t.Skip("not of the mesh")
		}
		typed, err := scheme.New(example.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(example.Object, typed); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "-everything-said.yaml") {
			return
		}
		got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(example.Object["spec"], got["spec"]); diff != "" {
			t.Errorf("spec (-read +written):\n%s", diff)
		}
	})
}
