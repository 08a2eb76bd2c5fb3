package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/cluster"
)

func TestLeaders(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Profile: "hub"})
	installCRDs(t, c.Config())
	t.Run("take over from each other", func(t *testing.T) { takeOver(t, c) })
	t.Run("are cut off from their server", func(t *testing.T) { serverGoesAway(t, c) })
}

func takeOver(t *testing.T, c *cluster.Cluster) {
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
		reported(t, admin, name, "NamespaceNotFound")
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

// serverGoesAway cuts a leader and one that stands by off from their API server, and gives it back to the latter.
func serverGoesAway(t *testing.T, c *cluster.Cluster) {
	namespace := c.Namespace(t)
	start := func() (*process, *wire) {
		wire := newWire(t, c)
		wire.plugIn(t)
		p := startOperator(t, elsewhere(t, c, wire.address), "--leader-election-namespace", namespace)
		p.ready(t)
		return p, wire
	}
	says := func(p *process, path string, want int, text string) {
		t.Helper()
		address := p.address(t, "health probes")
		eventually(t, time.Minute, func(context.Context) error {
			if code, body := probe(t, address, path); code != want || !strings.Contains(body, text) {
				return fmt.Errorf("%s says %d: %s", path, code, body)
			}
			return nil
		})
	}

	leader, first := start()
	leader.leading(t)
	other, second := start()
	says(leader, "/readyz", http.StatusOK, "")
	says(other, "/readyz", http.StatusOK, "")

	first.setCut(true)
	second.setCut(true)
	cut := time.Now()
	if code := leader.exitCode(t, 20*time.Second); code != 1 {
		t.Errorf("the leader ended with %d", code)
	}
	t.Logf("cut off, the leader ended after %s", time.Since(cut).Round(100*time.Millisecond))
	if time.Since(cut) > 12*time.Second {
		t.Error("that is later than another one may take the lease")
	}
	want := regexp.MustCompile(`(?m)^error: lost the lease ` + namespace + `/fairlead: the API server https://` + first.address +
		` could not be reached for \d+s; start the operator again \(a Deployment does\)$`)
	if !want.MatchString(leader.lines.String()) {
		t.Error("the leader did not say why it ended")
	}
	says(other, "/readyz", http.StatusServiceUnavailable, "")
	says(other, "/readyz", http.StatusServiceUnavailable, "the API server https://"+second.address+" has not answered for ")
	says(other, "/healthz", http.StatusOK, "")

	second.setCut(false)
	other.leading(t)
	says(other, "/readyz", http.StatusOK, "")
	if code := other.stop(t); code != 0 {
		t.Errorf("the other ended with %d", code)
	}
}
