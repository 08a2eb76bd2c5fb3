package meshservice_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// Exit codes of commands.
const (
	done       = 0
	failed     = 1
	unfinished = 3
)

func (s *stage) migrate(t testing.TB, args ...string) {
	t.Helper()
	s.enter(t, done, "migrate", append(args, "--yes"))
}

// standing waits until the record of the mesh has these consumers in that state.
func (s *stage) standing(t testing.TB, want map[string]kumav1alpha1.ConsumerState) *kumav1alpha1.MeshMigration {
	t.Helper()
	mesh := s.meshObject()
	var record *kumav1alpha1.MeshMigration
	s.until(t, mesh, func() error {
		recorded, err := consumers.ReadRecord(t.Context(), s, mesh)
		if err != nil {
			return err
		}
		if record = recorded.Status.Migration; record == nil {
			return fmt.Errorf("Mesh %s has no record: %+v", s.mesh, mesh.Status.Conditions)
		}
		states := map[string]kumav1alpha1.ConsumerState{}
		for _, c := range record.Consumers {
			states[c.Name] = c.State
		}
		for name, state := range want {
			if got := states[s.consumer(name)]; got != state {
				return fmt.Errorf("%s is %q, want %s: %+v", name, got, state, record)
			}
		}
		return nil
	})
	return record
}

// recorded waits until the operator has recorded the request of the mesh.
func (s *stage) recorded(t testing.TB) {
	t.Helper()
	mesh := s.meshObject()
	s.until(t, mesh, func() error {
		now, err := consumers.ReadRecord(t.Context(), s, mesh)
		if err == nil && !consumers.ReadProgress(now).Observed {
			err = fmt.Errorf("the operator has not recorded the request of Mesh %s: %+v", s.mesh, now.Status.Migration)
		}
		return err
	})
}

func (s *stage) concludes(t testing.TB, status metav1.ConditionStatus, reason string, fragments ...string) {
	t.Helper()
	mesh := s.meshObject()
	s.until(t, mesh, func() error {
		return harness.CheckCondition(mesh.Status.Conditions, kumav1alpha1.ConditionConsumersSwitched, status, reason, fragments...)
	})
}

func all(state kumav1alpha1.ConsumerState, names ...string) map[string]kumav1alpha1.ConsumerState {
	states := map[string]kumav1alpha1.ConsumerState{}
	for _, name := range names {
		states[name] = state
	}
	return states
}

// TestMigrate switches consumers over with the commands, one by one, and back.
func TestMigrate(t *testing.T) {
	t.Parallel()
	s := newShop(t, kumav1alpha1.ModeReachableBackendRefs)
	tag, cluster := s.tag("backend"), s.cluster("backend")
	s.cart.reaches(t, []string{tag}, []string{cluster})
	s.checkout.reaches(t, []string{tag}, []string{cluster})
	s.until(t, meshService("backend", nil), func() error { return nil })

	// An hour after the first it would be the turn of the second.
	s.migrate(t, "--batch-size", "1", "--delay", "1h")
	s.standing(t, map[string]kumav1alpha1.ConsumerState{"backend": kumav1alpha1.ConsumerSwitched, "cart": kumav1alpha1.ConsumerWaiting})
	s.enter(t, unfinished, "status", nil, s.consumer("cart"))
	s.enter(t, done, "pause", nil)
	s.concludes(t, metav1.ConditionFalse, kumav1alpha1.ReasonPaused, "fairlead resume mesh")
	// A new word replaces the old one, and waits as well.
	s.migrate(t, "--batch-size", "1")
	s.recorded(t)
	s.concludes(t, metav1.ConditionFalse, kumav1alpha1.ReasonPaused)
	s.cart.reaches(t, []string{tag}, []string{cluster})
	s.enter(t, done, "resume", nil)
	s.standing(t, all(kumav1alpha1.ConsumerSwitched, "backend", "cart", "checkout"))
	s.concludes(t, metav1.ConditionTrue, kumav1alpha1.ReasonSwitched, "3 of 3")
	s.enter(t, done, "status", nil, s.consumer("cart"))
	s.cart.reaches(t, []string{tag, cluster}, nil)
	s.checkout.reaches(t, []string{tag, cluster}, nil)

	// No pod was replaced for that. One that is replaced now stays switched.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: s.cart.id.Name}}
	if err := s.read(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	successor := s.connect(t, s.play(t, "cart", s.address()))
	successor.reaches(t, []string{tag, cluster}, nil)

	s.migrate(t, "--revert")
	s.concludes(t, metav1.ConditionFalse, kumav1alpha1.ReasonReverted)
	successor.reaches(t, []string{tag}, []string{cluster})
	s.checkout.reaches(t, []string{tag}, []string{cluster})
}

// TestStoryRefusal: one proxy refuses what it is given. No consumer after it is switched, until it is mended.
func TestStoryRefusal(t *testing.T) {
	t.Parallel()
	s := newShop(t, kumav1alpha1.ModeReachableBackendRefs)
	tag, cluster := s.tag("backend"), s.cluster("backend")
	later := s.connect(t, s.runs(t, deployment("later", 0)))
	for _, p := range []*proxy{s.cart, s.checkout, later} {
		p.reaches(t, []string{tag}, []string{cluster})
	}
	s.until(t, meshService("backend", nil), func() error { return nil })

	s.checkout.refuse("no such field")
	s.migrate(t, "--batch-size", "1")
	s.standing(t, map[string]kumav1alpha1.ConsumerState{
		"cart": kumav1alpha1.ConsumerSwitched, "checkout": kumav1alpha1.ConsumerFailed, "later": kumav1alpha1.ConsumerWaiting,
	})
	s.concludes(t, metav1.ConditionFalse, kumav1alpha1.ReasonFailed, s.checkout.id.Name, "no such field")
	s.enter(t, failed, "status", nil, s.consumer("checkout"), s.checkout.id.Name)
	later.reaches(t, []string{tag}, []string{cluster})
	some := func(n float64) bool { return n > 0 }
	s.Operator.Measures(t, fmt.Sprintf(`fairlead_mesh_consumers{mesh=%q,state="Failed"}`, s.mesh), some)
	s.Operator.Measures(t, fmt.Sprintf(`fairlead_mesh_switch_reason{mesh=%q,reason="Failed"}`, s.mesh), some)
	s.Operator.Measures(t, fmt.Sprintf(`fairlead_mesh_refusals_total{mesh=%q}`, s.mesh), some)
	s.Operator.CompareMetrics(t, "meshservice")
	harness.Traces().HasStages(t, "mesh-consumers")

	// With the next change of its configuration it is sent again what it has refused.
	s.checkout.hear(true)
	s.create(t, service("more"))
	s.connect(t, s.runs(t, deployment("more", 8080)))
	s.checkout.reaches(t, []string{s.tag("more")}, nil)
	s.enter(t, done, "retry", nil)
	s.standing(t, all(kumav1alpha1.ConsumerSwitched, "cart", "checkout", "later"))
	s.checkout.reaches(t, []string{tag, cluster}, nil)
	later.reaches(t, []string{tag, cluster}, nil)
}

// TestSilentProxy: one proxy never acknowledges, and the operator gives it a second. That is too little for a proxy that
// does, so that the consumers are switched by an operator that waits.
func TestSilentProxy(t *testing.T) {
	w := theWorld(t)
	w.again(t, "--mesh-insecure", "--mesh-switch-timeout", "1s")
	s := newShop(t, kumav1alpha1.ModeReachableBackendRefs)
	tag, cluster := s.tag("backend"), s.cluster("backend")
	s.cart.reaches(t, []string{tag}, []string{cluster})
	s.checkout.reaches(t, []string{tag}, []string{cluster})
	s.until(t, meshService("backend", nil), func() error { return nil })

	s.cart.hear(false)
	s.migrate(t, "--batch-size", "1", "--consumers", s.consumer("cart")+","+s.consumer("checkout"))
	s.standing(t, map[string]kumav1alpha1.ConsumerState{"cart": kumav1alpha1.ConsumerFailed, "checkout": kumav1alpha1.ConsumerWaiting})
	s.concludes(t, metav1.ConditionFalse, kumav1alpha1.ReasonFailed, s.cart.id.Name)

	w.again(t, "--mesh-insecure")
	s.connect(t, s.backend.id)
	cart, checkout := s.connect(t, s.cart.id), s.connect(t, s.checkout.id)
	s.enter(t, done, "retry", nil)
	s.standing(t, all(kumav1alpha1.ConsumerSwitched, "cart", "checkout"))
	cart.reaches(t, []string{tag, cluster}, nil)
	checkout.reaches(t, []string{tag, cluster}, nil)
}

// TestDisconnectedProxy: the proxy of a consumer never connects. It is not switched, until somebody gives up the
// acknowledgement.
func TestDisconnectedProxy(t *testing.T) {
	w := theWorld(t)
	w.again(t, "--mesh-insecure", "--mesh-switch-timeout", "1s")
	s := newShop(t, kumav1alpha1.ModeReachableBackendRefs)
	idle := s.runs(t, deployment("idle", 0))
	s.until(t, meshService("backend", nil), func() error { return nil })

	s.migrate(t, "--consumers", s.consumer("idle"))
	s.concludes(t, metav1.ConditionFalse, kumav1alpha1.ReasonProxiesNotConnected, idle.Name, "--allow-disconnected")
	s.standing(t, all(kumav1alpha1.ConsumerWaiting, "idle"))
	s.enter(t, unfinished, "status", nil, "Held", s.consumer("idle")+" Waiting", idle.Name)

	s.migrate(t, "--consumers", s.consumer("idle"), "--allow-disconnected")
	s.standing(t, all(kumav1alpha1.ConsumerSwitched, "idle"))
	s.concludes(t, metav1.ConditionTrue, kumav1alpha1.ReasonSwitched, "1 of 1")
	w.again(t, "--mesh-insecure")
}

// TestStoryOperatorKilled: the operator dies while a batch is open, and its successor ends where it would have ended.
func TestStoryOperatorKilled(t *testing.T) {
	s := newShop(t, kumav1alpha1.ModeReachableBackendRefs)
	tag, cluster := s.tag("backend"), s.cluster("backend")
	s.cart.reaches(t, []string{tag}, []string{cluster})
	s.checkout.reaches(t, []string{tag}, []string{cluster})
	s.until(t, meshService("backend", nil), func() error { return nil })

	s.checkout.hear(false)
	s.migrate(t, "--batch-size", "1")
	before := s.standing(t, map[string]kumav1alpha1.ConsumerState{
		"cart": kumav1alpha1.ConsumerSwitched, "checkout": kumav1alpha1.ConsumerSwitching,
	})
	s.again(t, "--mesh-insecure")

	s.connect(t, s.backend.id)
	cart, checkout := s.connect(t, s.cart.id), s.connect(t, s.checkout.id)
	cart.reaches(t, []string{tag, cluster}, nil)
	checkout.reaches(t, []string{tag, cluster}, nil)
	after := s.standing(t, all(kumav1alpha1.ConsumerSwitched, "backend", "cart", "checkout"))
	if after.Intent != before.Intent || after.Failed != 0 || after.Switched != 3 {
		t.Errorf("it ended as %+v, after %+v", after, before)
	}
	s.concludes(t, metav1.ConditionTrue, kumav1alpha1.ReasonSwitched)
	wait.Until(t, func(context.Context) error { return cart.end() })
}

// replace is what `kubectl replace --force` does: the Mesh is deleted, and another one created from the same manifest. In between the
// operator notices the deletion, which ends the metrics of the Mesh, and the ConfigMap of the Mesh is collected: by the test, since
// the garbage collector may take longer than the operator keeps what it has generated.
func (s *stage) replace(t testing.TB) {
	t.Helper()
	before := s.meshObject()
	if err := s.read(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	series := fmt.Sprintf(`fairlead_mesh_consumers{mesh=%q,state="Switched"}`, s.mesh)
	s.Operator.Measures(t, series, func(n float64) bool { return n > 0 })
	if err := s.Delete(t.Context(), s.meshObject()); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, func(ctx context.Context) error {
		all, err := s.Operator.Metrics(ctx)
		if _, found := all[series]; err == nil && found {
			err = fmt.Errorf("the operator has not noticed that Mesh %s is deleted", s.mesh)
		}
		return err
	})
	vips := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: desired.VIPConfigMap(s.mesh)}}
	if err := s.Delete(t.Context(), vips); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	again := s.meshObject()
	again.Spec = before.Spec
	if err := s.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if again.UID == before.UID {
		t.Fatal("it is the same Mesh")
	}
}

// TestReplacedMesh: the Mesh is replaced by force while a batch is open. Nobody is switched back, not for a moment, and the
// streams of the proxies stay open.
func TestReplacedMesh(t *testing.T) {
	t.Parallel()
	s := newShop(t, kumav1alpha1.ModeReachableBackendRefs)
	tag, cluster := s.tag("backend"), s.cluster("backend")
	later := s.connect(t, s.runs(t, deployment("later", 0)))
	s.cart.reaches(t, []string{tag}, []string{cluster})
	s.until(t, meshService("backend", nil), func() error { return nil })

	s.checkout.hear(false)
	s.migrate(t, "--batch-size", "1")
	s.standing(t, map[string]kumav1alpha1.ConsumerState{
		"cart": kumav1alpha1.ConsumerSwitched, "checkout": kumav1alpha1.ConsumerSwitching, "later": kumav1alpha1.ConsumerWaiting,
	})
	s.cart.reaches(t, []string{tag, cluster}, nil)

	s.replace(t)
	s.concludes(t, metav1.ConditionFalse, kumav1alpha1.ReasonWithdrawn, "stay switched")
	s.enter(t, unfinished, "status", nil, s.consumer("cart")+" Switched", s.consumer("checkout")+" Switching", s.consumer("later")+" Waiting")
	s.checkout.hear(true)
	s.standing(t, map[string]kumav1alpha1.ConsumerState{
		"cart": kumav1alpha1.ConsumerSwitched, "checkout": kumav1alpha1.ConsumerSwitched, "later": kumav1alpha1.ConsumerWaiting,
	})
	later.reaches(t, []string{tag}, []string{cluster})
	for _, p := range []*proxy{s.cart, s.checkout} {
		p.reaches(t, []string{tag, cluster}, nil)
		if lost := p.lostClusters(); len(lost) > 0 {
			t.Errorf("%s has lost %q", p.id, lost)
		}
	}

	s.migrate(t, "--batch-size", "1")
	s.concludes(t, metav1.ConditionTrue, kumav1alpha1.ReasonSwitched, "4 of 4")
	later.reaches(t, []string{tag, cluster}, nil)
}
