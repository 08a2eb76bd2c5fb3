package snapshot

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// chance makes objects of a small world, so that they meet often.
type chance struct{ *rand.Rand }

func pick[T any](c chance, from ...T) T { return from[c.IntN(len(from))] }

func (c chance) meta(name, namespace string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Namespace: namespace, CreationTimestamp: metav1.Unix(int64(c.IntN(3)), 0)}
	if c.IntN(8) == 0 {
		m.Labels = map[string]string{kumav1alpha1.LabelMesh: "other"}
	}
	return m
}

func (c chance) service() string { return pick(c, "a", "b", "c", "d") }

func (c chance) tag() string {
	return pick(c, c.service(), model.KubernetesTag(c.service(), "shop", pick[uint32](c, 80, 81)))
}

func (c chance) object() client.Object {
	switch c.IntN(12) {
	case 0:
		return &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: pick(c, "default", "other")}, Spec: kumav1alpha1.MeshSpec{
			MeshServices: &kumav1alpha1.MeshServices{Mode: pick(c, kumav1alpha1.ModeDisabled, kumav1alpha1.ModeEverywhere, kumav1alpha1.ModeReachableBackendRefs, kumav1alpha1.ModeExclusive)},
			Routing:      &kumav1alpha1.Routing{LocalityAwareLoadBalancing: c.IntN(2) == 0},
		}, Status: kumav1alpha1.MeshStatus{Mode: pick(c, kumav1alpha1.ModeEverywhere, kumav1alpha1.ModeExclusive)}}
	case 1:
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: c.service(), Namespace: "shop"}, Spec: corev1.ServiceSpec{
			ClusterIP: pick(c, "10.96.0.1", "10.96.0.2", "None"), Ports: []corev1.ServicePort{{Port: pick[int32](c, 80, 81)}},
		}}
	case 2:
		i := &kumav1alpha1.ZoneIngress{ObjectMeta: metav1.ObjectMeta{Name: pick(c, "i1", "i2", "i3"), Namespace: "kuma-system"}}
		i.Spec.Zone = pick(c, "west", "north", "east")
		i.Spec.Networking.Address, i.Spec.Networking.Port = pick(c, "192.0.2.1", "192.0.2.2", "nowhere"), 10001
		for range c.IntN(3) {
			i.Spec.AvailableServices = append(i.Spec.AvailableServices, kumav1alpha1.AvailableService{
				Tags: map[string]string{kumav1alpha1.TagService: c.tag()}, Instances: c.Int32N(3), Mesh: pick(c, "default", "other"),
			})
		}
		return i
	case 3, 4:
		return c.meshService()
	case 5:
		z := &kumav1alpha1.MeshMultiZoneService{ObjectMeta: c.meta(pick(c, "z1", "z2"), "kuma-system")}
		z.Spec.Selector.MeshService.MatchLabels = pick(c, nil, map[string]string{kumav1alpha1.LabelDisplayName: c.service()}, map[string]string{kumav1alpha1.LabelZone: "west"})
		z.Spec.Ports = []kumav1alpha1.MultiZonePort{{Port: pick[int32](c, 80, 81)}}
		z.Status.VIPs = []kumav1alpha1.VIP{{IP: "241.0.0.9"}}
		return z
	case 6, 7:
		return c.policy()
	default:
		return c.dataplane()
	}
}

func (c chance) meshService() client.Object {
	s := &kumav1alpha1.MeshService{ObjectMeta: c.meta(c.service(), pick(c, "shop", "shop", "kuma-system"))}
	if s.Namespace == "kuma-system" {
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[kumav1alpha1.LabelZone] = pick(c, "west", "north", "east")
		s.Labels[kumav1alpha1.LabelDisplayName] = c.service()
		s.Labels[kumav1alpha1.LabelNamespace] = "shop"
	}
	for _, port := range pick(c, []int32{80}, []int32{81}, []int32{80, 81}) {
		s.Spec.Ports = append(s.Spec.Ports, kumav1alpha1.Port{Port: port, TargetPort: pick(c, intstr.FromInt32(8080), intstr.FromString("main")), AppProtocol: pick(c, "", "http", "grpc")})
	}
	s.Spec.Selector.DataplaneTags = map[string]string{"app": c.service()}
	if c.IntN(5) == 0 {
		s.Spec.Selector = kumav1alpha1.MeshServiceSelector{DataplaneRef: &kumav1alpha1.DataplaneRef{Name: pick(c, "p1", "p2")}}
		if c.IntN(2) == 0 {
			if s.Labels == nil {
				s.Labels = map[string]string{}
			}
			s.Labels[kumav1alpha1.LabelManagedBy] = kumav1alpha1.ManagedBy
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: c.service(), Controller: ptr.To(true)}}
		}
	}
	s.Status.VIPs = []kumav1alpha1.VIP{{IP: pick(c, "10.96.0.1", "241.0.0.1")}}
	s.Status.Addresses = []kumav1alpha1.Address{{Hostname: pick(c, "a.local", "b.local", "a.shop.svc.cluster.local")}}
	return s
}

func (c chance) dataplane() client.Object {
	d := &kumav1alpha1.Dataplane{ObjectMeta: c.meta(pick(c, "p1", "p2", "p3", "p4", "p5"), pick(c, "shop", "shop", "kuma-system"))}
	d.Spec.Networking.Address = pick(c, "10.0.0.1", "10.0.0.2", "10.0.0.3", "name")
	for range c.IntN(3) {
		app := c.service()
		d.Spec.Networking.Inbound = append(d.Spec.Networking.Inbound, kumav1alpha1.Inbound{
			Port: pick[int32](c, 8080, 8081), Name: pick(c, "main", ""), State: pick(c, "", kumav1alpha1.InboundNotReady, kumav1alpha1.InboundIgnored),
			Tags: map[string]string{kumav1alpha1.TagService: pick(c, app, model.KubernetesTag(app, "shop", 80)), "app": app, "rack": pick(c, "1", "2"), kumav1alpha1.TagProtocol: pick(c, "http", "tcp")},
		})
	}
	switch c.IntN(5) {
	case 0:
		d.Spec.Networking.Outbound = []kumav1alpha1.Outbound{{Port: 1, Tags: map[string]string{kumav1alpha1.TagService: c.tag()}}}
	case 1:
		d.Spec.Networking.Outbound = []kumav1alpha1.Outbound{{Port: 2, BackendRef: &kumav1alpha1.OutboundBackendRef{Kind: "MeshService", Name: c.service(), Port: 80}}}
	}
	switch t := (&kumav1alpha1.TransparentProxying{}); c.IntN(5) {
	case 0:
		t.ReachableServices = []string{c.tag(), c.tag()}
		d.Spec.Networking.TransparentProxying = t
	case 1:
		t.ReachableBackendRefs = &kumav1alpha1.BackendRefs{Items: []kumav1alpha1.ReachableBackendRef{
			{Kind: "MeshService", Name: c.service()},
			{Kind: "MeshService", Labels: map[string]string{kumav1alpha1.LabelDisplayName: c.service()}, Port: pick(c, nil, ptr.To[int32](80))},
			{Kind: "MeshMultiZoneService", Labels: map[string]string{}},
		}}
		d.Spec.Networking.TransparentProxying = t
	}
	return d
}

func (c chance) policy() client.Object {
	to := kumav1alpha1.ToTargetRef{Kind: "MeshService", Name: c.tag()}
	switch c.IntN(3) {
	case 0:
		to = kumav1alpha1.ToTargetRef{Kind: "Mesh"}
	case 1:
		to = kumav1alpha1.ToTargetRef{Kind: "MeshService", Labels: map[string]string{kumav1alpha1.LabelDisplayName: c.service()}, SectionName: ptr.To(intstr.FromInt32(80))}
	}
	top := pick(c, nil, &kumav1alpha1.TargetRef{Kind: "MeshSubset", Tags: map[string]string{"app": c.service()}})
	switch c.IntN(3) {
	case 0:
		p := &kumav1alpha1.MeshTimeout{ObjectMeta: c.meta(pick(c, "t1", "t2"), "shop")}
		p.Spec.TargetRef, p.Spec.To = top, []kumav1alpha1.MeshTimeoutTo{{TargetRef: to, Default: kumav1alpha1.MeshTimeoutConf{ConnectionTimeout: &metav1.Duration{Duration: time.Duration(1+c.IntN(3)) * time.Second}}}}
		return p
	case 1:
		p := &kumav1alpha1.MeshLoadBalancingStrategy{ObjectMeta: c.meta(pick(c, "l1", "l2"), "shop")}
		p.Spec.TargetRef, p.Spec.To = top, []kumav1alpha1.MeshLoadBalancingStrategyTo{{TargetRef: to, Default: kumav1alpha1.MeshLoadBalancingStrategyConf{
			LocalityAwareness: &kumav1alpha1.LocalityAwareness{LocalZone: &kumav1alpha1.LocalZone{AffinityTags: []kumav1alpha1.AffinityTag{{Key: "rack"}}}},
		}}}
		return p
	default:
		p := &kumav1alpha1.MeshHTTPRoute{ObjectMeta: c.meta(pick(c, "r1", "r2"), "shop")}
		ref := kumav1alpha1.BackendRef{Kind: "MeshService", Name: c.tag()}
		if c.IntN(2) == 0 {
			ref = kumav1alpha1.BackendRef{Kind: "MeshService", Name: c.service(), Port: ptr.To[int32](80)}
		}
		p.Spec.TargetRef, p.Spec.To = top, []kumav1alpha1.MeshHTTPRouteTo{{TargetRef: to, Rules: []kumav1alpha1.HTTPRule{{
			Matches: []kumav1alpha1.HTTPMatch{{Path: &kumav1alpha1.PathMatch{Type: "PathPrefix", Value: "/x"}}},
			Default: kumav1alpha1.HTTPRuleDefault{BackendRefs: []kumav1alpha1.BackendRef{ref}},
		}}}}
		return p
	}
}

// Whatever came and went, what is left is what an engine makes of it that knew nothing else.
func TestHistoryLeavesNoTrace(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := chance{rand.New(rand.NewPCG(seed, 7))}
			options := desired.ZoneInfo{Zone: "east", Environment: pick(c, "kubernetes", "universal"), SystemNamespace: "kuma-system"}
			e := New(options)
			there := map[objectKey]client.Object{}
			tags, switched := map[string]string{}, map[string]bool{}
			before := map[model.ProxyID]*resource.Config{}
			for range 80 {
				for range 1 + c.IntN(4) {
					obj := c.object()
					key := objectKey{model.KindOf(obj), obj.GetNamespace(), obj.GetName()}
					if c.IntN(3) == 0 {
						e.Delete(obj)
						delete(there, key)
					} else {
						e.Put(obj)
						there[key] = obj
					}
				}
				tags[c.tag()] = fmt.Sprintf("240.0.0.%d", c.IntN(200))
				switched[pick(c, "", "shop/Dataplane/")+pick(c, "p1", "p2", "p3")] = c.IntN(2) == 0
				e.SetVIPs("default", tags)
				e.SetSwitched("default", switched)
				changed := e.Flush()

				fresh := New(options)
				for _, obj := range there {
					fresh.Put(obj)
				}
				fresh.SetVIPs("default", tags)
				fresh.SetSwitched("default", switched)
				fresh.Flush()
				compare(t, e, fresh)
				now := configsOf(e)
				reported(t, before, now, changed)
				before = now
			}
			for _, obj := range there {
				e.Delete(obj)
			}
			e.SetVIPs("default", nil)
			e.SetSwitched("default", nil)
			e.Flush()
			if w := &e.state; len(w.meshes)+len(w.inputs)+len(w.services)+len(w.ingresses)+len(w.owners) > 0 {
				t.Errorf("of nothing is left: meshes %v, %+v", w.meshes, w)
			}
		})
	}
}

// configsOf are the configurations of all proxies.
func configsOf(e *Engine) map[model.ProxyID]*resource.Config {
	all := map[model.ProxyID]*resource.Config{}
	for _, m := range e.state.meshes {
		for id, g := range m.grouped {
			all[id] = g.config
		}
	}
	return all
}

func compare(t *testing.T, e, fresh *Engine) {
	t.Helper()
	for id, want := range configsOf(fresh) {
		if got := e.Config(id); got == nil || !got.Equal(want) {
			t.Fatalf("%s is not sent what it should be: %s", id, cmp.Diff(shown(t, want), shown(t, got)))
		}
	}
	if got, want := len(configsOf(e)), len(configsOf(fresh)); got != want {
		t.Fatalf("%d configs instead of %d", got, want)
	}
	for _, mesh := range []string{"default", "other"} {
		if diff := cmp.Diff(fresh.Problems(mesh), e.Problems(mesh)); diff != "" {
			t.Fatalf("problems: %s", diff)
		}
		if got, want := sizes(e.state.meshes[mesh]), sizes(fresh.state.meshes[mesh]); !slices.Equal(got, want) {
			t.Fatalf("something was left behind in %s: %v instead of %v", mesh, got, want)
		}
	}
}

// sizes of all that a mesh keeps.
func sizes(m *mesh) []int {
	if m == nil {
		return nil
	}
	all := []int{
		len(m.proxies), len(m.candidates), len(m.byObject), len(m.inbounds), len(m.remote), len(m.services), len(m.headless), len(m.dependents),
		len(m.selectors), len(m.byLabels), len(m.multiZone), len(m.destinations), len(m.byName), len(m.reachSets), len(m.groups), len(m.grouped), len(m.policies),
	}
	var reached, extras int
	for _, d := range m.destinations {
		reached += len(d.reachSets)
		extras += len(d.extras)
	}
	return append(all, reached, extras)
}

// reported checks that those were named whose config is another, and nobody else.
func reported(t *testing.T, before, after map[model.ProxyID]*resource.Config, changed []model.ProxyID) {
	t.Helper()
	want := map[model.ProxyID]bool{}
	for id, config := range after {
		if before[id] == nil || !config.Equal(before[id]) {
			want[id] = true
		}
	}
	for id := range before {
		if after[id] == nil {
			want[id] = true
		}
	}
	got := map[model.ProxyID]bool{}
	for _, id := range changed {
		got[id] = true
	}
	if !maps.Equal(got, want) {
		t.Fatalf("changed are %v, told were %v", want, got)
	}
}
