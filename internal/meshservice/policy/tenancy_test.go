package policy

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// TestTenants is about the policies of namespace bank, for a proxy of it and for one of namespace shop.
func TestTenants(t *testing.T) {
	const (
		theirs   = "{kind: MeshService, name: demo-app_kuma-demo_svc_5000}"
		ours     = "{kind: MeshService, name: till_bank_svc_80}"
		confined = "; a policy of namespace bank applies only to proxies and services of that namespace: move it to namespace kuma-system"
		leading  = "; a policy of namespace bank applies only to proxies of that namespace, since its backends are outside: move it to namespace kuma-system"
	)
	of := func(kind, to, rest string) string {
		return "kind: " + kind + "\nmetadata: {name: a, namespace: bank}\nspec: {to: [{targetRef: " + to + ", " + rest + "}]}"
	}
	waits := func(to string) string { return of("MeshTimeout", to, "default: {connectionTimeout: 1s}") }
	splits := func(to, backends string) string {
		return of("MeshTCPRoute", to, "rules: [{default: {backendRefs: ["+backends+"]}}]")
	}
	mirrors := func(to, backend string) string {
		return of("MeshHTTPRoute", to, "rules: [{default: {filters: [{type: RequestMirror, requestMirror: {backendRef: "+backend+"}}]}}]")
	}
	here, till := demoApp(5000, "5000"), service("till", "bank", "east", 80, "80")
	abroad := service("till", "bank", "west", 80, "80")
	everywhere := multiZone("tills", 80, "80")
	everywhere.Key.Namespace, everywhere.Namespace = "bank", "bank"

	for name, c := range map[string]struct {
		policy string
		to     model.Destination
		// why it does not count for the proxy of shop; empty where it does.
		why string
	}{
		"the mesh":                    {waits("{kind: Mesh}"), here, "targets every destination of the mesh" + confined},
		"the mesh, of its service":    {waits("{kind: Mesh}"), till, "targets every destination of the mesh" + confined},
		"another's tag":               {waits(theirs), tag("demo-app_kuma-demo_svc_5000"), "targets the kuma.io/service demo-app_kuma-demo_svc_5000" + confined},
		"another's, by its tag":       {waits(theirs), here, "targets the kuma.io/service demo-app_kuma-demo_svc_5000, and so port 5000 of the MeshService demo-app in namespace kuma-demo" + confined},
		"another's by name":           {waits("{kind: MeshService, name: demo-app, namespace: kuma-demo}"), here, "targets the MeshService demo-app in namespace kuma-demo" + confined},
		"another's by labels":         {waits("{kind: MeshService, labels: {kuma.io/display-name: demo-app}}"), here, "targets each MeshService with its labels" + confined},
		"another's by its namespace":  {waits("{kind: MeshService, labels: {kuma.io/namespace: kuma-demo}}"), here, "targets each MeshService with its labels" + confined},
		"all by labels":               {waits("{kind: MeshService, labels: {}}"), here, "targets each MeshService with its labels" + confined},
		"another's MeshMultiZone":     {waits("{kind: MeshMultiZoneService, name: everywhere, namespace: kuma-system}"), multiZone("everywhere", 80, "80"), "targets the MeshMultiZoneService everywhere in namespace kuma-system" + confined},
		"a tag of nobody":             {waits("{kind: MeshService, name: backend}"), tag("backend"), "targets the kuma.io/service backend" + confined},
		"its tag":                     {waits(ours), tag("till_bank_svc_80"), ""},
		"its own, by its tag":         {waits(ours), till, ""},
		"its own, in another zone":    {waits(ours), abroad, ""},
		"its own by name":             {waits("{kind: MeshService, name: till, sectionName: 80}"), till, ""},
		"its own by labels":           {waits("{kind: MeshService, labels: {kuma.io/display-name: till}}"), till, ""},
		"its own by its namespace":    {waits("{kind: MeshService, labels: {kuma.io/namespace: bank}}"), till, ""},
		"all its own by labels":       {waits("{kind: MeshService, labels: {}}"), till, ""},
		"its own MeshMultiZone":       {waits("{kind: MeshMultiZoneService, name: tills}"), everywhere, ""},
		"a route of another's":        {splits(theirs, ours), tag("demo-app_kuma-demo_svc_5000"), "targets the kuma.io/service demo-app_kuma-demo_svc_5000" + confined},
		"a route within":              {splits(ours, ours), tag("till_bank_svc_80"), ""},
		"a route within, by name":     {splits(ours, "{kind: MeshService, name: till, port: 80}"), tag("till_bank_svc_80"), ""},
		"a route within, by labels":   {splits(ours, "{kind: MeshService, labels: {kuma.io/namespace: bank}, port: 80}"), tag("till_bank_svc_80"), ""},
		"a route out":                 {splits(ours, ours+", "+theirs), tag("till_bank_svc_80"), "targets the kuma.io/service till_bank_svc_80" + leading},
		"a route out, by name":        {splits(ours, "{kind: MeshService, name: demo-app, namespace: kuma-demo, port: 80}"), tag("till_bank_svc_80"), "targets the kuma.io/service till_bank_svc_80" + leading},
		"a route perhaps out":         {splits(ours, "{kind: MeshService, labels: {kuma.io/display-name: till}, port: 80}"), tag("till_bank_svc_80"), "targets the kuma.io/service till_bank_svc_80" + leading},
		"a copy within":               {mirrors(ours, ours), tag("till_bank_svc_80"), ""},
		"a copy out":                  {mirrors(ours, theirs), tag("till_bank_svc_80"), "targets the kuma.io/service till_bank_svc_80" + leading},
		"a copy of what is another's": {mirrors(theirs, ours), tag("demo-app_kuma-demo_svc_5000"), "targets the kuma.io/service demo-app_kuma-demo_svc_5000" + confined},
	} {
		t.Run(name, func(t *testing.T) {
			policies := policiesIn(t, c.policy)
			set := Compile(policies, onKubernetes)
			own := cart()
			own.ID.Namespace = "bank"
			if got := len(set.Resolve(set.Class(own), c.to).Decisions); got != 1 {
				t.Errorf("%d entries are for a proxy of its namespace, want 1", got)
			}
			if got := set.Explain(set.Class(own), c.to); len(got) != 1 || !got[0].Applies {
				t.Errorf("to a proxy of its namespace it is explained as %v", got)
			}
			want := Decision{Kind: model.KindOf(policies[0]), Policy: "bank/a", Applies: c.why == "", Why: c.why}
			got := set.Explain(set.Class(cart()), c.to)
			if c.why == "" && len(got) == 1 {
				want.Why = got[0].Why
			}
			if diff := cmp.Diff([]Decision{want}, got); diff != "" {
				t.Error(diff)
			}
			if got := len(set.Resolve(set.Class(cart()), c.to).Decisions); got == 0 != (c.why != "") {
				t.Errorf("%d entries are for a proxy of another namespace", got)
			}
			universal := Compile(policies, desired.ZoneInfo{Environment: desired.Universal, SystemNamespace: "kuma-system"})
			if got := len(universal.Resolve(universal.Class(cart()), c.to).Decisions); got != 1 {
				t.Errorf("in universal %d entries are for a proxy, want 1", got)
			}
		})
	}
}

// TestTenantsChooseAmongTheirProxies is about policies of namespace bank with a targetRef of their own.
func TestTenantsChooseAmongTheirProxies(t *testing.T) {
	for name, ref := range map[string]string{
		"a service":   "{kind: MeshService, name: cart_shop_svc_80}",
		"a Dataplane": "{kind: Dataplane, name: cart-1, namespace: shop}",
		"tags":        "{kind: MeshSubset, tags: {version: \"1\"}}",
		"labels":      "{kind: Dataplane, labels: {app: cart}}",
	} {
		t.Run(name, func(t *testing.T) {
			text := "kind: MeshTimeout\nmetadata: {name: a, namespace: bank}\nspec: {targetRef: " + ref +
				", to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 1s}}]}"
			set := Compile(policiesIn(t, text), onKubernetes)
			class := set.Class(cart())
			if got := set.Resolve(class, tag("any")); got.Timeout != nil {
				t.Errorf("it sets the timeout of another's proxy to %v", got.Timeout)
			}
			if got := set.Explain(class, tag("any")); len(got) != 1 || got[0].Applies {
				t.Errorf("it is explained as %v", got)
			}
		})
	}
}

// TestManyTenants: the policies of others are not looked at.
func TestManyTenants(t *testing.T) {
	var texts []string
	for i := range 100 {
		texts = append(texts, fmt.Sprintf("kind: MeshTimeout\nmetadata: {name: a, namespace: tenant-%d}\nspec: {to: ["+
			"{targetRef: {kind: Mesh}, default: {connectionTimeout: 1s}}, {targetRef: {kind: MeshService, labels: {team: x}}, default: {connectionTimeout: 1s}}]}", i))
	}
	set := Compile(policiesIn(t, together(texts...)), onKubernetes)
	class := set.Class(cart())
	looked, here := 0, demoApp(5000, "5000")
	for _, g := range class.groups {
		g.candidates(&here, func(entries []*entry) { looked += len(entries) })
	}
	if len(class.groups) != 1 || looked != 0 {
		t.Errorf("%d entries in %d groups are looked at, want none in 1", looked, len(class.groups))
	}
}
