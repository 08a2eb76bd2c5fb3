package consumers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// maxObject is the size that etcd accepts by default.
const maxObject = 1536 * 1024

func sizeOf(t *testing.T, object any) int {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// A mesh with 20,000 consumers fits: all objects are small, and each consumer that starts or ends writes one of them.
func TestTwentyThousandConsumers(t *testing.T) {
	const consumers, small = 20_000, 64 * 1024
	w := newWorld(t)
	w.mesh.Name = strings.Repeat("m", 63)
	for i := range consumers {
		name := fmt.Sprintf("%s-%05d", strings.Repeat("c", 50), i)
		w.proxies[name] = &proxy{
			Proxy:      model.Proxy{ID: model.ProxyID{Mesh: w.mesh.Name, Namespace: "shop", Name: name}, Consumer: strings.Repeat("n", 60) + "/Deployment/" + name},
			connection: model.Connection{Connected: true, Current: true},
		}
	}
	w.ask(Intent{ID: "8a1f0c52-2f4b-4e8e-9d0a-0d5a9a3c1f11", BatchSize: 1})
	legacy := 0
	for round := range 3 {
		o := w.observe()
		d := Decide(o, w.now)
		writes := sliceWrites(w.mesh.Name, o.Slices, d.Record)
		// One for the consumer that is switched now, and one for the next, which starts.
		if round > 0 && len(writes) != 2 {
			t.Errorf("round %d writes %d slices, want 2", round, len(writes))
		}
		for _, one := range writes {
			if size := sizeOf(t, one.slice); size > small {
				t.Errorf("round %d: slice %s has %d consumers in %d bytes, more than %d", round, one.slice.Name, len(one.slice.Consumers), size, small)
			}
			w.slices[one.slice.Name] = *one.slice
		}
		w.mesh.Status.Migration = withoutConsumers(d.Record)
		if size := sizeOf(t, w.mesh); size > small {
			t.Errorf("round %d: the Mesh has %d bytes", round, size)
		}
		legacy = sizeOf(t, d.Record)
		w.sent = Switched(w.record())
		w.now = w.now.Add(time.Second)
	}
	if len(w.slices) > sliceCount || len(w.record().Status.Migration.Consumers) != consumers {
		t.Errorf("%d slices have %d consumers", len(w.slices), len(w.record().Status.Migration.Consumers))
	}
	if legacy < maxObject {
		t.Errorf("the record has %d bytes and would fit into one object: the test has too few consumers", legacy)
	}
}

func TestSliceName(t *testing.T) {
	for _, mesh := range []string{"default", strings.Repeat("m", 63)} {
		for _, consumer := range []string{"shop/Deployment/cart", "Uni_versal", ""} {
			name := sliceName(mesh, consumer)
			if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 || name != sliceName(mesh, consumer) {
				t.Errorf("%s: %v", name, wrong)
			}
		}
	}
}

// What is recorded in slices is read back, whether the Mesh has its status, has lost it, or has that of an earlier version.
func TestRecordIsReadBack(t *testing.T) {
	record := func() *kumav1alpha1.MeshMigration {
		m := &kumav1alpha1.MeshMigration{Intent: "one", Retry: "r", BatchSize: 2, DelaySeconds: 30}
		for i := range 300 {
			c := kumav1alpha1.MigratedConsumer{Name: fmt.Sprintf("shop/Deployment/c-%03d", i), Batch: 1}
			setState(&c, kumav1alpha1.ConsumerSwitched, epoch)
			c.Switched = true
			m.Consumers = append(m.Consumers, c)
		}
		countConsumers(m)
		return m
	}
	var all []fairleadv1alpha1.MeshConsumerSlice
	for _, s := range slicesFor("default", record()) {
		all = append(all, *s)
	}
	reverted := record()
	reverted.Intent = "zero"
	for i := range reverted.Consumers {
		reverted.Consumers[i].Switched = false
	}
	reverted.Consumers = append(reverted.Consumers, kumav1alpha1.MigratedConsumer{Name: "shop/Deployment/gone", Switched: true})
	var older []fairleadv1alpha1.MeshConsumerSlice
	for _, s := range slicesFor("default", reverted) {
		older = append(older, *s)
	}
	for name, c := range map[string]struct {
		status *kumav1alpha1.MeshMigration
		slices []fairleadv1alpha1.MeshConsumerSlice
	}{
		"as it is written":                      {withoutConsumers(record()), all},
		"the Mesh was created again":            {nil, all},
		"an earlier version":                    {record(), nil},
		"an earlier version, and half is moved": {record(), all[:len(all)/2]},
		"an earlier version, and all is moved":  {record(), all},
		"an earlier version, and older slices":  {record(), older},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := makeMesh(kumav1alpha1.ModeReachableBackendRefs)
			mesh.Status.Migration = c.status
			if diff := cmp.Diff(record(), WithRecord(mesh, c.slices).Status.Migration); diff != "" {
				t.Errorf("another record is read (-want +got):\n%s", diff)
			}
		})
	}
}

// A record of an earlier version is moved as it is, whatever the intent is, and before anything else.
func TestRecordOfEarlierVersionIsMoved(t *testing.T) {
	w, _ := opened(t, "a")
	w.proxy("a", model.Connection{Connected: true, Current: true})
	w.ask(Intent{ID: "another", Revert: true})
	before := w.mesh.Status.Migration.DeepCopy()
	countConsumers(before)
	published := map[string]bool{}
	recorded := func(_ string, switched map[string]bool) bool { return maps.Equal(published, switched) }
	for writes := range 2 {
		// The process dies after each write, and the next one starts again.
		d := movedRecord(w.mesh)
		if diff := cmp.Diff(before.Consumers, d.Record.Consumers); diff != "" {
			t.Errorf("after %d writes another record is moved:\n%s", writes, diff)
		}
		if d.Condition == nil || d.Condition.Type != kumav1alpha1.ConditionConsumersSwitched {
			t.Errorf("the condition is %+v", d.Condition)
		}
		for _, one := range sliceWrites(w.mesh.Name, w.recorded(), d.Record) {
			w.slices[one.slice.Name] = *one.slice
		}
	}
	if isPublished(w.mesh, recorded) {
		t.Error("the status is emptied before the publisher knows the slices: it would switch consumers back")
	}
	if published = Switched(w.mesh); !isPublished(w.mesh, recorded) || !isPublished(w.mesh, nil) {
		t.Error("the status keeps the consumers although the publisher knows the slices")
	}
	w.mesh.Status.Migration = withoutConsumers(before)
	if diff := cmp.Diff(before.Consumers, w.record().Status.Migration.Consumers); diff != "" {
		t.Errorf("another record is read afterwards:\n%s", diff)
	}
	if d := Decide(w.observe(), w.now); d.Record.Intent != "another" || d.Record.Consumers[0].State != kumav1alpha1.ConsumerReverting {
		t.Errorf("then it is decided %+v", d.Record)
	}
}

// The slices of a deleted Mesh are kept for an hour, in which it may be created again.
func TestAbsentMeshes(t *testing.T) {
	a := absentMeshes{}
	for _, c := range []struct {
		minute int
		want   time.Duration
	}{{0, time.Hour}, {59, time.Minute}, {60, 0}, {90, 0}} {
		if got := a.remaining("default", epoch.Add(time.Duration(c.minute)*time.Minute)); got != c.want {
			t.Errorf("after %d minutes it is kept for %s, want %s", c.minute, got, c.want)
		}
	}
	if got := a.remaining("other", epoch); got != time.Hour {
		t.Errorf("another one is kept for %s", got)
	}
}

// A new intent may have reached some of the slices only when the process dies. The others follow it as they would have.
func TestIntentIsStartedOncePerConsumer(t *testing.T) {
	names := []string{"shop/Deployment/a", "shop/Deployment/b", "shop/Deployment/c"}
	w := newWorld(t)
	w.ask(Intent{ID: "two"})
	record := &kumav1alpha1.MeshMigration{Intent: "one", Revert: true, BatchSize: 1}
	for _, name := range names {
		c := kumav1alpha1.MigratedConsumer{Name: name, Switched: true}
		setState(&c, kumav1alpha1.ConsumerFailed, epoch)
		record.Consumers = append(record.Consumers, c)
	}
	// All have failed; a is started anew by the second intent, and waits to be tried again.
	for _, s := range slicesFor("default", record) {
		if slices.ContainsFunc(s.Consumers, func(c kumav1alpha1.MigratedConsumer) bool { return c.Name == names[0] }) {
			s.Intent, s.Revert = "two", false
			setState(&s.Consumers[0], kumav1alpha1.ConsumerWaiting, epoch)
		}
		w.slices[s.Name] = *s
	}
	w.mesh.Status.Migration = withoutConsumers(record)
	setMode(w.mesh, kumav1alpha1.ModeDisabled) // nothing starts
	d := Decide(w.observe(), w.now)
	for _, name := range names {
		i := slices.IndexFunc(d.Record.Consumers, func(c kumav1alpha1.MigratedConsumer) bool { return c.Name == name })
		if i < 0 || d.Record.Consumers[i].State != kumav1alpha1.ConsumerWaiting {
			t.Errorf("%s: %+v", name, d.Record.Consumers)
		}
	}
}
