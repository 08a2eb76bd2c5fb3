package model

import "testing"

func TestCluster(t *testing.T) {
	for name, key := range map[string]Key{
		"demo-app_kuma-demo_svc_5000": TagKey("demo-app_kuma-demo_svc_5000"),
		"backend":                     TagKey("backend"),
		"demo-app_kuma-demo_east_default_msvc_5000":       {Kind: MeshService, Name: "demo-app", Namespace: "kuma-demo", Zone: "east", Mesh: "default", Port: 5000},
		"backend__east_default_msvc_80":                   {Kind: MeshService, Name: "backend", Zone: "east", Mesh: "default", Port: 80},
		"backend_kuma-system__default_mzsvc_80":           {Kind: MeshMultiZoneService, Name: "backend", Namespace: "kuma-system", Mesh: "default", Port: 80},
		"demo-app_kuma-demo_east_default_msvc_x":          TagKey("demo-app_kuma-demo_east_default_msvc_x"),
		"demo-app_kuma-demo_east_default_msvc_080":        TagKey("demo-app_kuma-demo_east_default_msvc_080"),
		"demo-app_kuma-demo_east_default_msvc_70000":      TagKey("demo-app_kuma-demo_east_default_msvc_70000"),
		"demo-app_kuma-demo_east_default_other_5000":      TagKey("demo-app_kuma-demo_east_default_other_5000"),
		"demo-app_kuma-demo_east_default_msvc_5000_extra": TagKey("demo-app_kuma-demo_east_default_msvc_5000_extra"),
	} {
		t.Run(name, func(t *testing.T) {
			if got := ParseCluster(name); got != key {
				t.Errorf("the key of %s is %#v, want %#v", name, got, key)
			}
			if got := key.Cluster(); got != name {
				t.Errorf("its cluster is %s", got)
			}
		})
	}
}

func TestKubernetesTag(t *testing.T) {
	if got := KubernetesTag("demo-app", "kuma-demo", 5000); got != "demo-app_kuma-demo_svc_5000" {
		t.Errorf("got %s", got)
	}
	name, namespace, port, ok := ParseKubernetesTag("demo-app_kuma-demo_svc_5000")
	if !ok || name != "demo-app" || namespace != "kuma-demo" || port != 5000 {
		t.Errorf("got %s %s %d %v", name, namespace, port, ok)
	}
	for _, tag := range []string{"", "backend", "a_b_svc_", "a_b_svc_0", "a_b_svc_70000", "a_b_cluster_80", "_b_svc_80", "a__svc_80", "a_b_svc_80_x"} {
		if _, _, _, ok := ParseKubernetesTag(tag); ok {
			t.Errorf("%q was taken for one of Kubernetes", tag)
		}
	}
}

func TestProxyID(t *testing.T) {
	for id, want := range map[string]ProxyID{
		"default.cart-0.shop":    {"default", "shop", "cart-0"},
		"default.cart.v1.0.shop": {"default", "shop", "cart.v1.0"},
	} {
		if got, err := ParseProxyID(id, true); err != nil || got != want || got.String() != id {
			t.Errorf("%s is %#v, %v", id, got, err)
		}
	}
	if got, err := ParseProxyID("default.cart.v1", false); err != nil || got != (ProxyID{Mesh: "default", Name: "cart.v1"}) {
		t.Errorf("got %#v, %v", got, err)
	}
	for _, id := range []string{"", "default", ".x.y", "default.", "default.cart", "default.cart.", "default..shop"} {
		if got, err := ParseProxyID(id, true); err == nil {
			t.Errorf("%q was taken for %#v", id, got)
		}
	}
}

// The table of what a proxy reaches, row by row.
func TestReach(t *testing.T) {
	listed := Target{Key: Key{Kind: MeshService, Name: "listed", Namespace: "shop", Port: 80}, Name: "listed", Namespace: "shop", Labels: map[string]string{"team": "a", "kuma.io/display-name": "listed", "kuma.io/namespace": "shop"}}
	other := Target{Key: Key{Kind: MeshService, Name: "other", Namespace: "shop", Port: 80}, Name: "other", Namespace: "shop"}
	listedTag, otherTag := Target{Key: TagKey("listed_shop_svc_80")}, Target{Key: TagKey("other_shop_svc_80")}
	services := func(r Reach) Reach { r.Services, r.ServicesSet = []string{"listed_shop_svc_80"}, true; return r }
	refs := func(r Reach) Reach {
		r.Refs, r.RefsSet = []BackendRef{{Kind: MeshService, Name: "listed", Namespace: "shop"}}, true
		return r
	}
	type outbounds struct{ listedTag, otherTag, listed, other bool }
	all, one := outbounds{true, true, true, true}, Reach{}
	for name, c := range map[string]struct {
		reach Reach
		want  map[Mode]outbounds
	}{
		"neither": {one, map[Mode]outbounds{
			Disabled: {true, true, false, false}, ReachableBackendRefs: {true, true, false, false}, Everywhere: all, Exclusive: {false, false, true, true}}},
		"reachableServices": {services(one), map[Mode]outbounds{
			Disabled: {true, false, false, false}, ReachableBackendRefs: {true, false, false, false}, Everywhere: {true, false, false, false}, Exclusive: {}}},
		"reachableBackendRefs": {refs(one), map[Mode]outbounds{
			Disabled: {true, true, false, false}, ReachableBackendRefs: {true, true, true, false}, Everywhere: {true, true, true, false}, Exclusive: {false, false, true, false}}},
		"both": {refs(services(one)), map[Mode]outbounds{
			Disabled: {true, false, false, false}, ReachableBackendRefs: {true, false, true, false}, Everywhere: {true, false, true, false}, Exclusive: {false, false, true, false}}},
		"empty refs": {Reach{RefsSet: true}, map[Mode]outbounds{
			Disabled: {true, true, false, false}, ReachableBackendRefs: {true, true, false, false}, Everywhere: {true, true, false, false}, Exclusive: {}}},
		"empty labels": {Reach{RefsSet: true, Refs: []BackendRef{{Kind: MeshService, Labels: map[string]string{}}}}, map[Mode]outbounds{
			Disabled: {true, true, false, false}, ReachableBackendRefs: all, Everywhere: all, Exclusive: {false, false, true, true}}},
		"labels": {Reach{RefsSet: true, Refs: []BackendRef{{Kind: MeshService, Labels: map[string]string{"team": "a"}}}}, map[Mode]outbounds{
			ReachableBackendRefs: {true, true, true, false}}},
		"another port": {Reach{RefsSet: true, Refs: []BackendRef{{Kind: MeshService, Name: "listed", Port: 81}}}, map[Mode]outbounds{
			ReachableBackendRefs: {true, true, false, false}}},
		"another kind": {Reach{RefsSet: true, Refs: []BackendRef{{Kind: MeshMultiZoneService, Labels: map[string]string{}}}}, map[Mode]outbounds{
			ReachableBackendRefs: {true, true, false, false}}},
		"switched": {one.WithMeshServices(), map[Mode]outbounds{
			Disabled: {true, true, false, false}, ReachableBackendRefs: all}},
		"switched, with services": {services(one).WithMeshServices(), map[Mode]outbounds{
			ReachableBackendRefs: {true, false, true, false}}},
		"switched, with every service": {Reach{ServicesSet: true, Services: []string{"*"}}.WithMeshServices(), map[Mode]outbounds{
			ReachableBackendRefs: all}},
		"switched, with refs": {refs(one).WithMeshServices(), map[Mode]outbounds{
			ReachableBackendRefs: {true, true, true, false}}},
	} {
		for mode, want := range c.want {
			t.Run(name+" in "+string(mode), func(t *testing.T) {
				got := outbounds{
					c.reach.Reaches(mode, listedTag), c.reach.Reaches(mode, otherTag), c.reach.Reaches(mode, listed), c.reach.Reaches(mode, other),
				}
				if got != want {
					t.Errorf("reaches %+v, want %+v", got, want)
				}
			})
		}
	}
}

func TestNamesTag(t *testing.T) {
	for name, c := range map[string]struct {
		written    string
		namespaced bool
		want       bool
	}{
		"of Kubernetes":                  {"demo-app_kuma-demo_svc_5000", false, true},
		"of Kubernetes, and a namespace": {"demo-app_kuma-demo_svc_5000", true, true},
		"of universal":                   {"backend", false, true},
		"of an object":                   {"backend", true, false},
		"none":                           {"", false, false},
	} {
		if got := NamesTag(c.written, c.namespaced); got != c.want {
			t.Errorf("%s: that it names a tag is %t", name, got)
		}
	}
}
