package e2e_test

import (
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/cluster"
)

func TestLeaderElection(t *testing.T) {
	c := cluster.Shared(t)
	installCRDs(t, c.Config())
	admin := administrator(t, c.Config())
	namespace := c.Namespace(t)
	start := func() *process {
		p := startOperator(t, c.Kubeconfig(), "--leader-election-namespace", namespace)
		p.ready(t)
		return p
	}
	// acts shows that it is not only the lease that has been taken over.
	acts := func() {
		t.Helper()
		name := uniqueName(t)
		create(t, admin, makeIstio(name, "v1.24.0"))
		reported(t, admin, name, "IstiodNotReady")
	}
	holder := func() string {
		t.Helper()
		var lease coordinationv1.Lease
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "fairlead"}, &lease); err != nil {
			t.Fatal(err)
		}
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	identity := func(p *process) string {
		t.Helper()
		id, _ := p.logged(t, time.Second, "taking part in leader election")["identity"].(string)
		return id
	}

	first := start()
	first.leading(t)
	second := start()
	acts()
	if holder() != identity(first) {
		t.Fatalf("the lease is held by %s", holder())
	}

	first.signal(t, syscall.SIGKILL)
	killed := time.Now()
	second.leading(t)
	t.Logf("after kill -9 of the leader, the other led within %s", time.Since(killed).Round(100*time.Millisecond))
	if took := time.Since(killed); took > 20*time.Second {
		t.Errorf("that is too long")
	}
	acts()
	if holder() != identity(second) {
		t.Errorf("the lease is held by %s", holder())
	}

	third := start()
	asked := time.Now()
	if code := second.stop(t); code != 0 {
		t.Errorf("asked to end, the leader ended with %d", code)
	}
	third.leading(t)
	t.Logf("after SIGTERM of the leader, the other led within %s", time.Since(asked).Round(100*time.Millisecond))
	if took := time.Since(asked); took > 5*time.Second {
		t.Error("that is as if the lease had not been released")
	}
	acts()

	if code := third.stop(t); code != 0 {
		t.Errorf("asked to end, the last one ended with %d", code)
	}
	if holder() != "" {
		t.Errorf("with nobody left, the lease is held by %s", holder())
	}
}
