package snapshot

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/harness/growth"
)

// town is a mesh of services with an instance each, consumers, and policies.
type town struct {
	services, consumers, policies int
	// reachable is how many each consumer lists; zero lists none, so that everything is reachable.
	reachable int
	mode      kumav1alpha1.Mode
}

func serviceName(i int) string { return fmt.Sprintf("service-%04d", i) }

func serviceTag(i int) string { return model.KubernetesTag(serviceName(i), "shop", 80) }

func (town town) mesh(mode kumav1alpha1.Mode) client.Object {
	return &kumav1alpha1.Mesh{
		ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: kumav1alpha1.MeshSpec{MeshServices: &kumav1alpha1.MeshServices{Mode: mode}},
		Status: kumav1alpha1.MeshStatus{Mode: mode},
	}
}

func (town town) instance(i, address int) client.Object {
	d := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Name: serviceName(i), Namespace: "shop"}}
	d.Spec.Networking.Address = fmt.Sprintf("10.%d.%d.%d", address, i/250, i%250+1)
	d.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 8080, Tags: map[string]string{
		kumav1alpha1.TagService: serviceTag(i), kumav1alpha1.TagProtocol: "http", "app": serviceName(i), kumav1alpha1.TagZone: "east",
	}}}
	// What serves calls nothing here, so that consumers alone are measured.
	d.Spec.Networking.TransparentProxying = &kumav1alpha1.TransparentProxying{
		ReachableServices: []string{"none"}, ReachableBackendRefs: &kumav1alpha1.BackendRefs{Items: []kumav1alpha1.ReachableBackendRef{}},
	}
	return d
}

func (town town) policy(i, seconds int) client.Object {
	p := &kumav1alpha1.MeshTimeout{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("policy-%02d", i), Namespace: "kuma-system"}}
	// A tenth of them is for some consumers only.
	if i%10 == 9 {
		p.Spec.TargetRef = &kumav1alpha1.TargetRef{Kind: "MeshSubset", Tags: map[string]string{"team": fmt.Sprint(i % 7)}}
	}
	for to := range 4 {
		p.Spec.To = append(p.Spec.To, kumav1alpha1.MeshTimeoutTo{
			TargetRef: kumav1alpha1.ToTargetRef{Kind: "MeshService", Name: serviceTag((i*4 + to) % town.services)},
			Default:   kumav1alpha1.MeshTimeoutConf{ConnectionTimeout: &metav1.Duration{Duration: time.Duration(seconds) * time.Second}},
		})
	}
	return p
}

func (town town) objects() []client.Object {
	chance := rand.New(rand.NewPCG(1, 2))
	objects := []client.Object{town.mesh(cmp.Or(town.mode, kumav1alpha1.ModeEverywhere))}
	for i := range town.services {
		ip := fmt.Sprintf("10.96.%d.%d", i/250, i%250+1)
		s := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Name: serviceName(i), Namespace: "shop"}}
		s.Spec.Ports = []kumav1alpha1.Port{{Port: 80, TargetPort: intstr.FromInt32(8080), AppProtocol: "http"}}
		s.Spec.Selector.DataplaneTags = map[string]string{"app": serviceName(i)}
		s.Status.VIPs = []kumav1alpha1.VIP{{IP: ip}}
		s.Status.Addresses = []kumav1alpha1.Address{{Hostname: serviceName(i) + ".shop.mesh.local"}}
		objects = append(objects, s, town.instance(i, 1), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: serviceName(i), Namespace: "shop"},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}},
		})
	}
	for i := range town.policies {
		objects = append(objects, town.policy(i, 1+i))
	}
	for i := range town.consumers {
		d := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("consumer-%04d", i), Namespace: "shop"}}
		d.Spec.Networking.Address = "10.2.0.1"
		d.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 8080, State: kumav1alpha1.InboundIgnored, Tags: map[string]string{
			kumav1alpha1.TagService: "consumers", "team": fmt.Sprint(i % 7),
		}}}
		if town.reachable > 0 {
			t := &kumav1alpha1.TransparentProxying{ReachableBackendRefs: &kumav1alpha1.BackendRefs{}}
			for _, s := range chance.Perm(town.services)[:town.reachable] {
				t.ReachableServices = append(t.ReachableServices, serviceTag(s))
				t.ReachableBackendRefs.Items = append(t.ReachableBackendRefs.Items, kumav1alpha1.ReachableBackendRef{Kind: "MeshService", Name: serviceName(s)})
			}
			d.Spec.Networking.TransparentProxying = t
		}
		objects = append(objects, d)
	}
	return objects
}

// cost is processor time, since the machine is not ours alone, and memory.
type cost struct {
	time      time.Duration
	allocated uint64
	touched   int
}

func measured(b *testing.B, do func() int) cost {
	b.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := growth.ProcessorTime(b)
	touched := do()
	c := cost{time: growth.ProcessorTime(b) - start, touched: touched}
	runtime.ReadMemStats(&after)
	c.allocated = after.TotalAlloc - before.TotalAlloc
	return c
}

func kept() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// costs of a town, and the bytes that are kept for a consumer.
type costs struct {
	build, endpoint, policy, mode, problems cost
	consumer                                uint64
}

func (town town) measure(b *testing.B) costs {
	b.Helper()
	objects := town.objects()
	build := func(objects []client.Object) *Engine {
		e := New(desired.ZoneInfo{Zone: "east", Environment: "kubernetes", SystemNamespace: "kuma-system"})
		vips := map[string]string{}
		for i := range town.services {
			vips[serviceTag(i)] = fmt.Sprintf("240.0.%d.%d", i/250, i%250+1)
		}
		e.SetVIPs("default", vips)
		for _, obj := range objects {
			e.Put(obj)
		}
		e.Flush()
		return e
	}
	// Without consumers there are the same destinations, but nothing is built for anybody.
	base := kept()
	without := build(objects[:len(objects)-town.consumers])
	bare := kept() - base
	runtime.KeepAlive(without)

	var c costs
	var e *Engine
	base = kept()
	c.build = measured(b, func() int { e = build(objects); return len(configsOf(e)) })
	c.consumer = (kept() - base - bare) / uint64(town.consumers)
	put := func(obj client.Object) cost {
		return measured(b, func() int { e.Put(obj); return len(e.Flush()) })
	}
	// Once is too short to be seen by the clock of a processor.
	const times = 20
	for i := range times {
		one := put(town.instance(3, 100+i))
		c.endpoint.time += one.time / times
		c.endpoint.allocated += one.allocated / times
		c.endpoint.touched = one.touched
	}
	c.policy = put(town.policy(1, 99))
	c.mode = put(town.mesh(kumav1alpha1.ModeExclusive))
	all := measured(b, func() int {
		for range times {
			e.Problems("default")
		}
		return 0
	})
	c.problems = cost{time: all.time / times, allocated: all.allocated / times}
	return c
}

func (c cost) String() string {
	return fmt.Sprintf("%10s %8.1f MB %5d proxies", c.time.Round(10*time.Microsecond), float64(c.allocated)/1e6, c.touched)
}

// The engine is as quick and as small as consumers need it to be: what a change costs is what it touches.
func BenchmarkEngine(b *testing.B) {
	run := func(name string, town town) costs {
		var c costs
		b.Run(name, func(b *testing.B) {
			for range b.N {
				c = town.measure(b)
			}
			b.ReportMetric(c.build.time.Seconds(), "cpu-s/build")
			b.ReportMetric(float64(c.consumer)/1024, "KiB/consumer")
			b.Logf("%d services, %d consumers, %d policies, %s", town.services, town.consumers, town.policies, name)
			for _, row := range []struct {
				what string
				cost cost
			}{{"full build", c.build}, {"one endpoint", c.endpoint}, {"one policy", c.policy}, {"one mode", c.mode}, {"its problems", c.problems}} {
				b.Logf("%-13s %s", row.what, row.cost)
			}
		})
		return c
	}
	listed := run("50 reachable", town{services: 1000, consumers: 1000, policies: 50, reachable: 50})
	run("everything reachable", town{services: 1000, consumers: 1000, policies: 50})
	small := run("50 reachable of a quarter", town{services: 250, consumers: 1000, policies: 50, reachable: 50})
	if listed.build.time == 0 || small.build.time == 0 {
		return // not all were asked for
	}
	if share := float64(listed.endpoint.time) / float64(listed.build.time); share > 0.01 {
		b.Errorf("one endpoint costs %.2f %% of a full build, more than 1 %%", share*100)
	}
	// They are looked for at every change, while others wait.
	if share := float64(listed.problems.time) / float64(listed.build.time); share > 0.1 {
		b.Errorf("to tell problems costs %.2f %% of a full build, more than 10 %%", share*100)
	}
	if listed.consumer > 75<<10 {
		b.Errorf("%d bytes are kept for a consumer, more than 75 KiB", listed.consumer)
	}
	if growth := float64(listed.build.time) / float64(small.build.time); growth > 4 {
		b.Errorf("four times the services cost %.1f times as much", growth)
	}
}
