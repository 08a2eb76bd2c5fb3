package publish

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/internal/meshservice/xds/snapshot"
)

// recordingStore records the proxies that are set or deleted since the last flush.
type recordingStore struct {
	onSet        func()
	set, deleted []string
}

func (s *recordingStore) Set(id model.ProxyID, config *resource.Config) {
	if config == nil {
		s.deleted = append(s.deleted, id.String())
		return
	}
	s.set = append(s.set, id.String())
	if s.onSet != nil {
		s.onSet()
	}
}

// world is a publisher with the meshes one and two, and a proxy in each.
type world struct {
	*testing.T
	*Publisher
	store *recordingStore
}

func newWorld(t *testing.T) world {
	where := desired.ZoneInfo{Environment: desired.Kubernetes, Zone: "east", SystemNamespace: "kuma-system"}
	w := world{T: t, store: &recordingStore{}}
	w.Publisher = New(nil, snapshot.New(where), w.store, where)
	for _, name := range []string{"one", "two"} {
		w.put(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kumav1alpha1.LabelMesh: name}}})
		w.put(mesh(name))
		w.put(dataplane(name, "10.0.0.1"))
	}
	return w
}

func mesh(name string, switched ...string) *kumav1alpha1.Mesh {
	m := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: kumav1alpha1.MeshStatus{Migration: &kumav1alpha1.MeshMigration{}}}
	for _, consumer := range switched {
		m.Status.Migration.Consumers = append(m.Status.Migration.Consumers, kumav1alpha1.MigratedConsumer{Name: consumer, Switched: true})
	}
	return m
}

func dataplane(mesh, address string) *kumav1alpha1.Dataplane {
	d := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{
		Name: "cart", Namespace: mesh, Labels: map[string]string{kumav1alpha1.LabelMesh: mesh},
	}}
	d.Spec.Networking.Address = address
	d.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 80, Tags: map[string]string{kumav1alpha1.TagService: "cart_" + mesh + "_svc_80"}}}
	return d
}

func (w world) recordVIPs(mesh string) {
	w.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: desired.VIPConfigMap(mesh), Namespace: "kuma-system", Labels: map[string]string{kumav1alpha1.LabelMesh: mesh},
	}})
}

func (w world) expectSet(when string, want ...string) {
	w.Helper()
	w.store.set = nil
	w.flush()
	if slices.Sort(w.store.set); !slices.Equal(w.store.set, want) {
		w.Errorf("%s: %v are set, want %v", when, w.store.set, want)
	}
}

func TestProxiesWaitForVIPs(t *testing.T) {
	w := newWorld(t)
	w.expectSet("before VIPs are recorded")
	w.recordVIPs("one")
	w.expectSet("with the VIPs of one", "one.cart.one")
	w.expectSet("afterwards, nothing twice")
	w.put(dataplane("one", "10.0.0.2"))
	w.put(dataplane("two", "10.0.0.2"))
	w.expectSet("after a change in both", "one.cart.one")
	w.recordVIPs("two")
	w.expectSet("with the VIPs of two", "two.cart.two")
	if !w.IsServed("one") || !w.IsServed("two") {
		t.Error("a mesh with VIPs is not served")
	}
	w.remove(mesh("two"))
	w.put(dataplane("one", "10.0.0.3"))
	w.put(dataplane("two", "10.0.0.3"))
	w.expectSet("after a Mesh is deleted", "one.cart.one")
	if w.IsServed("two") {
		t.Error("a deleted mesh is served")
	}
	w.remove(dataplane("two", "10.0.0.3"))
	w.flush()
	if !slices.Equal(w.store.deleted, []string{"two.cart.two"}) {
		t.Errorf("%v are deleted", w.store.deleted)
	}
}

// VIPs of a mesh may be recorded while the proxies of another are served: its own are not published then.
func TestPublishedByTheNextFlush(t *testing.T) {
	w := newWorld(t)
	w.store.onSet = func() { w.recordVIPs("two") }
	w.recordVIPs("one")
	w.flush()
	for mesh, want := range map[string]bool{"one": true, "two": false} {
		if _, published := w.SwitchedConsumers(mesh); published != want {
			t.Errorf("that mesh %s is published is %v", mesh, published)
		}
	}
	w.flush()
	if _, published := w.SwitchedConsumers("two"); !published {
		t.Error("mesh two is not published")
	}
}

// A Mesh may be deleted and created again while the proxies of another are served.
func TestMeshIsServedAgainDuringFlush(t *testing.T) {
	w := newWorld(t)
	w.recordVIPs("one")
	w.recordVIPs("two")
	w.expectSet("with VIPs", "one.cart.one", "two.cart.two")
	// Whichever comes first, the mesh of the other is reset.
	w.store.onSet = func() {
		w.store.onSet = nil
		other := map[string]string{"one.cart.one": "two", "two.cart.two": "one"}[w.store.set[0]]
		w.remove(mesh(other))
		w.put(mesh(other))
		w.recordVIPs(other)
	}
	w.put(dataplane("one", "10.0.0.2"))
	w.put(dataplane("two", "10.0.0.2"))
	w.store.set = nil
	w.flush()
	w.flush()
	if slices.Sort(w.store.set); !slices.Equal(slices.Compact(w.store.set), []string{"one.cart.one", "two.cart.two"}) {
		t.Errorf("%v are set", w.store.set)
	}
}

func TestSwitchedConsumers(t *testing.T) {
	w := newWorld(t)
	expect := func(when string, want int, published bool) {
		t.Helper()
		if got, ok := w.SwitchedConsumers("one"); len(got) != want || ok != published {
			t.Errorf("%s: published are %v, %v", when, got, ok)
		}
	}
	w.recordVIPs("one")
	expect("before the first flush", 0, false)
	w.store.onSet = func() { w.put(mesh("one", "one/Deployment/cart", "one/Deployment/mail")) }
	w.put(mesh("one", "one/Deployment/cart"))
	expect("before the flush", 0, false)
	w.flush()
	expect("with a change during the flush", 1, true)
	w.flush()
	expect("after the next flush", 2, true)
	w.store.onSet = func() { w.remove(mesh("one")) }
	w.put(dataplane("one", "10.0.0.2"))
	w.flush()
	expect("after the Mesh is deleted during a flush", 0, false)
}

func slice(mesh string, switched ...string) *fairleadv1alpha1.MeshConsumerSlice {
	s := &fairleadv1alpha1.MeshConsumerSlice{ObjectMeta: metav1.ObjectMeta{Name: mesh + "-00"}, Mesh: mesh}
	for _, consumer := range switched {
		s.Consumers = append(s.Consumers, kumav1alpha1.MigratedConsumer{Name: consumer, Switched: true})
	}
	return s
}

// A Mesh that is deleted and created again has its switched consumers before its proxies get a configuration, and while there
// is none they keep the one that they have.
func TestSwitchedConsumersOutliveTheMesh(t *testing.T) {
	w := newWorld(t)
	expect := func(when string, published bool, want ...string) {
		t.Helper()
		got, ok := w.SwitchedConsumers("one")
		if names := slices.Sorted(maps.Keys(got)); ok != published || !slices.Equal(names, want) {
			t.Errorf("%s: published are %v, %v, want %v, %v", when, names, ok, want, published)
		}
	}
	w.put(slice("one", "one/Deployment/cart"))
	w.recordVIPs("one")
	w.expectSet("first", "one.cart.one")
	expect("with one in a slice", true, "one/Deployment/cart")

	w.remove(mesh("one"))
	w.put(dataplane("one", "10.0.0.2"))
	w.expectSet("without the Mesh")
	expect("without the Mesh", false)

	again := mesh("one")
	again.UID = "another"
	w.put(again)
	w.expectSet("created again, before its VIPs are recorded")
	w.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: desired.VIPConfigMap("one"), Namespace: "kuma-system", Labels: map[string]string{kumav1alpha1.LabelMesh: "one"},
		OwnerReferences: []metav1.OwnerReference{{Kind: kumav1alpha1.MeshKind, Name: "one", UID: "another", Controller: ptr.To(true)}},
	}})
	w.expectSet("created again", "one.cart.one")
	expect("created again", true, "one/Deployment/cart")

	w.remove(slice("one", "one/Deployment/cart"))
	w.flush()
	expect("without the slice", true)
}

// Where the status of a Mesh has the record, an earlier version has written it: slices are older, or copies.
func TestStatusOfAnEarlierVersionCounts(t *testing.T) {
	w := newWorld(t)
	expect := func(when string, want ...string) {
		t.Helper()
		w.flush()
		got, _ := w.SwitchedConsumers("one")
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("%s: published are %v, want %v", when, names, want)
		}
	}
	w.recordVIPs("one")
	w.put(slice("one", "one/Deployment/cart"))
	w.put(mesh("one", "one/Deployment/mail"))
	expect("with one in a slice and another one in the status", "one/Deployment/mail")
	waiting := mesh("one")
	waiting.Status.Migration.Consumers = []kumav1alpha1.MigratedConsumer{{Name: "one/Deployment/mail", State: kumav1alpha1.ConsumerWaiting}}
	w.put(waiting)
	expect("with one in a slice and nobody switched in the status")
	if got := slices.Sorted(maps.Keys(w.RecordedConsumers("one"))); !slices.Equal(got, []string{"one/Deployment/cart"}) {
		t.Errorf("recorded in slices are %v", got)
	}
	w.put(mesh("one"))
	expect("with a status that has no record", "one/Deployment/cart")
}

// VIPs are recorded in several ConfigMaps, of which the first is written last: until then the mesh is not served. Those of an earlier
// Mesh of the name do not count.
func TestVIPsOfShards(t *testing.T) {
	w := newWorld(t)
	record := func(shard int, owner types.UID, vips map[string]string) {
		w.put(&corev1.ConfigMap{Data: vips, ObjectMeta: metav1.ObjectMeta{
			Name: desired.VIPShard("one", shard), Namespace: "kuma-system", Labels: map[string]string{kumav1alpha1.LabelMesh: "one"},
			OwnerReferences: []metav1.OwnerReference{{Kind: kumav1alpha1.MeshKind, Name: "one", UID: owner, Controller: ptr.To(true)}},
		}})
	}
	named := func(uid types.UID) *kumav1alpha1.Mesh {
		m := mesh("one")
		m.UID = uid
		return m
	}
	has := func(vip string) bool {
		w.flush()
		config := w.Engine.Config(model.ProxyID{Mesh: "one", Namespace: "one", Name: "cart"})
		return slices.ContainsFunc(config.Of(resource.Listener), func(r *resource.Resource) bool { return strings.Contains(r.Name, vip) })
	}
	w.put(named("1"))
	record(1, "1", map[string]string{"cart_one_svc_80": "240.0.0.9"})
	if w.IsServed("one") {
		t.Error("the mesh is served before all VIPs are recorded")
	}
	record(0, "1", map[string]string{"other": "240.0.0.8"})
	if !w.IsServed("one") || !has("240.0.0.9") {
		t.Errorf("the VIP of a later ConfigMap is not in force; served: %t", w.IsServed("one"))
	}
	w.put(named("2"))
	record(0, "2", map[string]string{"cart_one_svc_80": "240.0.0.7"})
	if has("240.0.0.9") || !has("240.0.0.7") {
		t.Error("the VIP of an earlier Mesh is in force")
	}
}
