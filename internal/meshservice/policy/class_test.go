package policy

import (
	"testing"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func TestWhichProxiesAPolicyIsFor(t *testing.T) {
	universal := cart()
	universal.ID.Namespace = ""
	idle := cart()
	idle.Inbounds = nil
	for name, c := range map[string]struct {
		ref   string
		proxy model.Proxy
		want  bool
	}{
		"nobody named":                     {"", cart(), true},
		"the mesh":                         {"{kind: Mesh}", cart(), true},
		"sidecars":                         {"{kind: Mesh, proxyTypes: [Sidecar]}", cart(), true},
		"gateways only":                    {"{kind: Mesh, proxyTypes: [Gateway]}", cart(), false},
		"a gateway":                        {"{kind: MeshGateway, name: edge}", cart(), false},
		"tags of an inbound":               {"{kind: MeshSubset, tags: {version: \"2\"}}", cart(), true},
		"tags of two inbounds":             {"{kind: MeshSubset, tags: {version: \"2\", kuma.io/service: cart_shop_svc_80}}", cart(), false},
		"tags of no inbound":               {"{kind: MeshSubset, tags: {version: \"2\"}}", idle, false},
		"no tags":                          {"{kind: MeshSubset}", idle, true},
		"a service":                        {"{kind: MeshService, name: cart_shop_svc_90}", cart(), true},
		"another service":                  {"{kind: MeshService, name: cart_shop_svc_91}", cart(), false},
		"a service without a name":         {"{kind: MeshService}", cart(), false},
		"a part of a service":              {"{kind: MeshServiceSubset, name: cart_shop_svc_90, tags: {version: \"2\"}}", cart(), true},
		"another part":                     {"{kind: MeshServiceSubset, name: cart_shop_svc_90, tags: {version: \"1\"}}", cart(), false},
		"all Dataplanes":                   {"{kind: Dataplane}", cart(), true},
		"a Dataplane":                      {"{kind: Dataplane, name: cart-1, namespace: shop}", cart(), true},
		"one in another namespace":         {"{kind: Dataplane, name: cart-1, namespace: bank}", cart(), false},
		"one in the policy's":              {"{kind: Dataplane, name: cart-1}", cart(), false},
		"one in universal":                 {"{kind: Dataplane, name: cart-1}", universal, true},
		"another Dataplane":                {"{kind: Dataplane, name: cart-2, namespace: shop}", cart(), false},
		"labels":                           {"{kind: Dataplane, labels: {app: cart}}", cart(), true},
		"other labels":                     {"{kind: Dataplane, labels: {app: till}}", cart(), false},
		"a section, which is an inbound's": {"{kind: Dataplane, labels: {app: cart}, sectionName: http}", cart(), true},
	} {
		t.Run(name, func(t *testing.T) {
			text := timeout("a", "1s", "{kind: Mesh}")
			if c.ref != "" {
				text += "\n  targetRef: " + c.ref
			}
			set := Compile(policiesIn(t, text), onKubernetes)
			if got := set.Resolve(set.Class(c.proxy), tag("any")).Timeout != nil; got != c.want {
				t.Errorf("it is for it: %v", got)
			}
		})
	}
}

func TestProxiesOfTheSamePoliciesShareAClass(t *testing.T) {
	set := Compile(policiesIn(t, together(
		timeout("a", "1s", "{kind: Mesh}"),
		timeout("b", "1s", "{kind: Mesh}")+"\n  targetRef: {kind: Dataplane, labels: {app: cart}}",
		timeout("c", "1s", "{kind: Mesh}")+"\n  targetRef: {kind: MeshService, name: till}",
	)), onKubernetes)
	other, till := cart(), cart()
	other.ID.Name = "cart-2"
	till.Inbounds = append(till.Inbounds, map[string]string{"kuma.io/service": "till"}, map[string]string{"kuma.io/service": "till"})
	if set.Class(cart()) != set.Class(other) {
		t.Error("two of the same workload are of two classes")
	}
	if set.Class(cart()) == set.Class(till) {
		t.Error("one that another policy is for is of the same class")
	}
	if got := len(set.Resolve(set.Class(till), tag("any")).Decisions); got != 3 {
		t.Errorf("%d policies count for it, want 3", got)
	}
	if set.Resolve(set.Class(cart()), tag("any")) != set.Resolve(set.Class(other), tag("another")) {
		t.Error("what the same entries say is there twice")
	}
}

func TestFingerprint(t *testing.T) {
	of := func(text string) string {
		set := Compile(policiesIn(t, text), onKubernetes)
		return set.Resolve(set.Class(cart()), tag("any")).Fingerprint()
	}
	if of(timeout("a", "60s", "{kind: Mesh}")) != of(timeout("b", "1m", "{kind: MeshService, name: any}")) {
		t.Error("the same effect has two fingerprints")
	}
	if of(timeout("a", "60s", "{kind: Mesh}")) == of(timeout("a", "61s", "{kind: Mesh}")) {
		t.Error("two effects have one fingerprint")
	}
}
