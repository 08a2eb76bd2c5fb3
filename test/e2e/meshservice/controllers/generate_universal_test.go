package controllers_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func (w *world) dataplane(name, service string, port int32) *kumav1alpha1.Dataplane {
	return &kumav1alpha1.Dataplane{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.options.SystemNamespace, Name: name, Labels: map[string]string{kumav1alpha1.LabelMesh: w.mesh}},
		Spec: kumav1alpha1.DataplaneSpec{Networking: kumav1alpha1.Networking{Address: "10.0.0.1", Inbound: []kumav1alpha1.Inbound{
			{Port: port, Tags: map[string]string{kumav1alpha1.TagService: service, kumav1alpha1.TagProtocol: "http"}},
		}}},
	}
}

func vip(s *kumav1alpha1.MeshService) error {
	if len(s.Status.VIPs) != 1 || !strings.HasPrefix(s.Status.VIPs[0].IP, "241.") {
		return fmt.Errorf("its addresses are %+v", s.Status.VIPs)
	}
	return nil
}

// What Dataplanes serve has a MeshService, whose address stays over a restart, and which stays for the grace.
func TestUniversal(t *testing.T) {
	w := begin(t, desired.Universal, kumav1alpha1.ModeEverywhere, func(o *generate.Options) { o.Grace = time.Hour })
	system := w.options.SystemNamespace
	backend := w.dataplane("backend-1", "backend", 8080)
	w.create(t, backend, w.dataplane("frontend-1", "frontend", 8080), w.dataplane("odd-1", "not_a_name", 8080))
	w.become(t, system, "backend", "frontend")
	before := w.service(t, system, "backend", vip).Status.VIPs[0].IP
	if other := w.service(t, system, "frontend", vip).Status.VIPs[0].IP; other == before {
		t.Errorf("both have %s", other)
	}
	w.meshSays(t, kumav1alpha1.ModeEverywhere, kumav1alpha1.ConditionGenerated, "InvalidName")
	tags := w.tags(t, "backend", "frontend", "not_a_name")

	w.stop()
	w.start(t)
	w.create(t, w.dataplane("backend-2", "backend", 9090))
	s := w.service(t, system, "backend", func(s *kumav1alpha1.MeshService) error {
		return harness.CheckCondition(s.Status.Conditions, kumav1alpha1.ConditionPortsAgree, "", kumav1alpha1.ReasonPortConflict)
	})
	if s.Status.VIPs[0].IP != before || len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != 8080 {
		t.Errorf("it had %s, and is %+v %+v", before, s.Spec, s.Status)
	}
	if again := w.tags(t, "backend", "frontend", "not_a_name"); fmt.Sprint(again) != fmt.Sprint(tags) {
		t.Errorf("tags had %v, and have %v", tags, again)
	}
	if err := w.Delete(t.Context(), backend); err != nil {
		t.Fatal(err)
	}
	w.service(t, system, "backend", func(s *kumav1alpha1.MeshService) error {
		if s.Spec.Ports[0].Port != 9090 {
			return fmt.Errorf("its ports are %+v", s.Spec.Ports)
		}
		return harness.CheckCondition(s.Status.Conditions, kumav1alpha1.ConditionPortsAgree, "", kumav1alpha1.ReasonPortsAgree)
	})
	if err := w.Delete(t.Context(), w.dataplane("backend-2", "backend", 9090)); err != nil {
		t.Fatal(err)
	}
	w.service(t, system, "backend", func(s *kumav1alpha1.MeshService) error {
		if s.Annotations["fairlead.dev/unused-since"] == "" {
			return fmt.Errorf("nothing is said of its end: %v", s.Annotations)
		}
		return nil
	})
	w.tags(t, "backend", "frontend", "not_a_name")
	// Its grace is over for an operator that gives none.
	w.stop()
	w.options.Grace = 0
	w.start(t)
	w.become(t, system, "frontend")
	w.tags(t, "frontend", "not_a_name")
	w.turn(t, kumav1alpha1.ModeDisabled)
	w.become(t, system)
}

// tags waits until exactly these values have an address.
func (w *world) tags(t *testing.T, want ...string) map[string]string {
	t.Helper()
	var record corev1.ConfigMap
	wait.Until(t, func(ctx context.Context) error {
		record = corev1.ConfigMap{}
		if err := w.Get(ctx, client.ObjectKey{Namespace: w.options.SystemNamespace, Name: desired.VIPConfigMap(w.mesh)}, &record); err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, service := range want {
			address, err := netip.ParseAddr(record.Data[service])
			if err != nil || seen[address.String()] || address.As4()[0] != 240 {
				return fmt.Errorf("the addresses are %v", record.Data)
			}
			seen[address.String()] = true
		}
		if len(record.Data) != len(want) {
			return fmt.Errorf("the addresses are %v, want those of %v", record.Data, want)
		}
		return nil
	})
	return record.Data
}

// Two meshes may have a service of the same name, and none takes the other's.
func TestTwoMeshes(t *testing.T) {
	w := begin(t, desired.Universal, kumav1alpha1.ModeEverywhere)
	other := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: w.mesh + "-2"}}
	other.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: kumav1alpha1.ModeEverywhere}
	w.create(t, other, w.dataplane("backend-1", "backend", 8080))
	t.Cleanup(func() { _ = w.Delete(context.Background(), other) })
	w.become(t, w.options.SystemNamespace, "backend")
	second := w.dataplane("backend-2", "backend", 9090)
	second.Labels[kumav1alpha1.LabelMesh] = other.Name
	w.create(t, second)
	w.become(t, w.options.SystemNamespace, "backend", "backend."+other.Name)
	w.service(t, w.options.SystemNamespace, "backend."+other.Name, func(s *kumav1alpha1.MeshService) error {
		if desired.MeshOf(s) != other.Name || s.Labels[kumav1alpha1.LabelDisplayName] != "backend" || s.Spec.Ports[0].Port != 9090 {
			return fmt.Errorf("it is %+v", s)
		}
		return vip(s)
	})
}

// A range that is exhausted is told to those without an address, until one is free.
func TestVIPRangeExhausted(t *testing.T) {
	w := begin(t, desired.Universal, kumav1alpha1.ModeEverywhere, func(o *generate.Options) {
		o.Grace = 0
		o.Ranges = desired.Ranges{Tags: netip.MustParsePrefix("240.0.0.0/30"), Services: netip.MustParsePrefix("241.0.0.0/30")}
	})
	system := w.options.SystemNamespace
	w.create(t, w.dataplane("a", "a", 80), w.dataplane("b", "b", 80))
	w.service(t, system, "a", vip)
	w.service(t, system, "b", vip)
	w.create(t, w.dataplane("c", "c", 80))
	w.service(t, system, "c", func(s *kumav1alpha1.MeshService) error {
		return harness.CheckCondition(s.Status.Conditions, kumav1alpha1.ConditionVIPs, "", kumav1alpha1.ReasonRangeExhausted,
			"241.0.0.0/30 has no free address", "--mesh-service-cidr", "mesh.serviceCIDR")
	})
	w.meshSays(t, kumav1alpha1.ModeEverywhere, kumav1alpha1.ConditionVIPs, kumav1alpha1.ReasonRangeExhausted,
		"240.0.0.0/30 has no free address", "--mesh-tag-cidr", "mesh.tagCIDR")
	w.service(t, system, "a", vip)
	if err := w.Delete(t.Context(), w.dataplane("a", "a", 80)); err != nil {
		t.Fatal(err)
	}
	w.service(t, system, "c", vip)
	w.meshSays(t, kumav1alpha1.ModeEverywhere, kumav1alpha1.ConditionVIPs, kumav1alpha1.ReasonAllocated)
	w.tags(t, "b", "c")
}

// Of two with the same hostname the older has it, until it is gone.
func TestHostnames(t *testing.T) {
	w := begin(t, desired.Universal, kumav1alpha1.ModeEverywhere)
	system := w.options.SystemNamespace
	synced := func(name, zone string) *kumav1alpha1.MeshService {
		return &kumav1alpha1.MeshService{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name, Labels: map[string]string{
				kumav1alpha1.LabelMesh: w.mesh, kumav1alpha1.LabelDisplayName: "cart", kumav1alpha1.LabelZone: zone,
			}},
			Spec: kumav1alpha1.MeshServiceSpec{Ports: []kumav1alpha1.Port{{Port: 80}}},
		}
	}
	older, younger := synced("a-cart", "west"), synced("b-cart", "north")
	generator := &kumav1alpha1.HostnameGenerator{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "all"}}
	generator.Spec.Selector.MeshService = &kumav1alpha1.LabelMatch{}
	generator.Spec.Template = "{{ .DisplayName }}.local"
	elsewhere := generator.DeepCopy()
	elsewhere.Namespace, elsewhere.Spec.Template = w.namespace, "mine.local"
	w.create(t, older, younger, generator, elsewhere)
	has := func(hostname string) func(*kumav1alpha1.MeshService) error {
		return func(s *kumav1alpha1.MeshService) error {
			if len(s.Status.Addresses) != 1 || s.Status.Addresses[0].Hostname != hostname {
				return fmt.Errorf("its hostnames are %+v", s.Status.Addresses)
			}
			return vip(s)
		}
	}
	w.service(t, system, "a-cart", has("cart.local"))
	w.service(t, system, "b-cart", func(s *kumav1alpha1.MeshService) error {
		if len(s.Status.Addresses) != 0 {
			return fmt.Errorf("its hostnames are %+v", s.Status.Addresses)
		}
		return harness.CheckCondition(s.Status.Conditions, kumav1alpha1.ConditionAddressed, "", kumav1alpha1.ReasonHostnameCollision)
	})
	w.reported(t, w.namespace, "HostnameGenerator", "all", generate.ReasonIgnored)
	if err := w.Delete(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	w.service(t, system, "b-cart", has("cart.local"))
	w.edit(t, generator, func(o client.Object) {
		o.(*kumav1alpha1.HostnameGenerator).Spec.Template = "{{ .Zone }}.{{ .DisplayName }}.local"
	})
	w.service(t, system, "b-cart", has("north.cart.local"))
	w.edit(t, generator, func(o client.Object) { o.(*kumav1alpha1.HostnameGenerator).Spec.Template = "{{ .Zone" })
	w.reported(t, system, "HostnameGenerator", "all", kumav1alpha1.ReasonBadTemplate)
	w.service(t, system, "b-cart", func(s *kumav1alpha1.MeshService) error {
		return harness.CheckCondition(s.Status.Conditions, kumav1alpha1.ConditionAddressed, "", kumav1alpha1.ReasonBadTemplate)
	})
}

// A MeshMultiZoneService has an address of its own, and tells what it is made of.
func TestMultiZone(t *testing.T) {
	w := begin(t, desired.Universal, kumav1alpha1.ModeEverywhere)
	system := w.options.SystemNamespace
	multi := &kumav1alpha1.MeshMultiZoneService{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "backend", Labels: map[string]string{kumav1alpha1.LabelMesh: w.mesh}},
		Spec: kumav1alpha1.MeshMultiZoneServiceSpec{
			Selector: kumav1alpha1.MeshMultiZoneServiceSelector{MeshService: kumav1alpha1.LabelMatch{MatchLabels: map[string]string{kumav1alpha1.LabelDisplayName: "backend"}}},
			Ports:    []kumav1alpha1.MultiZonePort{{Port: 80}},
		},
	}
	w.create(t, multi, w.dataplane("backend-1", "backend", 80))
	other := w.service(t, system, "backend", vip).Status.VIPs[0].IP
	wait.Until(t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(multi), multi); err != nil {
			return err
		}
		s := multi.Status
		if len(s.VIPs) != 1 || s.VIPs[0].IP == other || len(s.MeshServices) != 1 || s.MeshServices[0].Zone != "east" {
			return fmt.Errorf("its status is %+v", s)
		}
		return nil
	})
}

// An address that two MeshServices have stays with the older one.
func TestVIPConflict(t *testing.T) {
	w := prepare(t, desired.Universal, kumav1alpha1.ModeEverywhere)
	system := w.options.SystemNamespace
	for _, name := range []string{"a", "b"} {
		service := desired.UniversalService(name, name, w.mesh, []kumav1alpha1.Port{{Port: 80}}, w.options.ZoneInfo)
		delete(service.Labels, kumav1alpha1.LabelManagedBy)
		w.create(t, service)
		service.Status.VIPs = []kumav1alpha1.VIP{{IP: "241.1.2.3"}}
		if err := w.Status().Update(t.Context(), service); err != nil {
			t.Fatal(err)
		}
	}
	w.start(t)
	has := func(mine bool) func(*kumav1alpha1.MeshService) error {
		return func(s *kumav1alpha1.MeshService) error {
			if err := vip(s); err != nil || (s.Status.VIPs[0].IP == "241.1.2.3") != mine || s.Status.ObservedGeneration == 0 {
				return fmt.Errorf("its status is %+v", s.Status)
			}
			return nil
		}
	}
	w.service(t, system, "b", has(false))
	w.service(t, system, "a", has(true))
}

// connections are those of proxies that a test connects.
type connections struct {
	mu        sync.Mutex
	connected map[model.ProxyID]bool
	reported  func(model.ProxyID)
}

func (c *connections) Connection(id model.ProxyID) model.Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return model.Connection{Connected: c.connected[id]}
}

func (c *connections) OnChange(reported func(model.ProxyID)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reported = reported
}

func (c *connections) set(id model.ProxyID, connected bool) {
	c.mu.Lock()
	c.connected[id] = connected
	reported := c.reported
	c.mu.Unlock()
	if reported != nil {
		reported(id)
	}
}

// Connected proxies are counted.
func TestConnectedProxies(t *testing.T) {
	c := &connections{connected: map[model.ProxyID]bool{}}
	w := begin(t, desired.Universal, kumav1alpha1.ModeEverywhere, func(o *generate.Options) { o.Connections = c })
	w.create(t, w.dataplane("backend-1", "backend", 80), w.dataplane("backend-2", "backend", 80))
	counts := func(n int32) {
		t.Helper()
		w.service(t, w.options.SystemNamespace, "backend", func(s *kumav1alpha1.MeshService) error {
			if want := (kumav1alpha1.DataplaneProxies{Total: 2, Connected: n, Healthy: 2}); s.Status.DataplaneProxies != want {
				return fmt.Errorf("its proxies are %+v", s.Status.DataplaneProxies)
			}
			return nil
		})
	}
	counts(0)
	first := model.ProxyID{Mesh: w.mesh, Name: "backend-1"}
	c.set(first, true)
	counts(1)
	c.set(first, false)
	counts(0)
}

// Without a namespace to record addresses in, the mesh says what to do; with it, all goes on.
func TestNoSystemNamespace(t *testing.T) {
	missing := cluster.Name(t)
	w := begin(t, desired.Universal, kumav1alpha1.ModeEverywhere, func(o *generate.Options) { o.SystemNamespace = missing })
	w.meshSays(t, kumav1alpha1.ModeEverywhere, kumav1alpha1.ConditionVIPs, generate.ReasonNoNamespace)
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: missing}})
	w.meshSays(t, kumav1alpha1.ModeEverywhere, kumav1alpha1.ConditionVIPs, kumav1alpha1.ReasonAllocated)
}
