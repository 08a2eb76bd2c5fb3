package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/test/cluster"
	"github.com/fairlead/fairlead/test/wait"
)

// otherPassage is one whose operator does nothing to what the other tests of a cluster make.
var otherPassage = []string{"--passages", "meshservice"}

// lease is a flag: how long a leader that is killed keeps its lease. It grows with the machine, for a leader that does not
// get to renew its lease in two thirds of it ends.
func lease() string { return leaseOf(wait.Deadline() / 9) }

// longLease is for an operator that is not replaced.
func longLease() string { return leaseOf(wait.Deadline() / 3) }

func leaseOf(d time.Duration) string {
	return "--leader-election-lease-duration=" + d.Round(time.Second).String()
}

// TestStoryLeaders kills a leader, which another one replaces when the lease has run out, and ends the other, which releases
// the lease.
func TestStoryLeaders(t *testing.T) {
	t.Parallel()
	c := storyCluster(t)
	admin := administrator(t, c.Config())
	namespace := c.Namespace(t)
	held := followLease(t, admin, namespace)
	start := func() (*process, string) {
		p := startOperator(t, c.Kubeconfig(), append(otherPassage, lease(), "--leader-election-namespace", namespace)...)
		p.ready(t)
		identity, _ := p.logged(t, "taking part in leader election")["identity"].(string)
		return p, identity
	}
	// acts shows that it is not only the lease that has been taken over.
	acts := func() {
		t.Helper()
		mesh := create(t, admin, &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: uniqueName(t)}})
		wait.Until(t, func(ctx context.Context) error {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(mesh), mesh); err != nil {
				return err
			}
			if mesh.Status.ObservedGeneration != mesh.Generation {
				return fmt.Errorf("no operator has reported on Mesh %s: %+v", mesh.Name, mesh.Status)
			}
			return nil
		})
	}

	first, one := start()
	first.leading(t)
	second, two := start()
	acts()
	held.wasHeldBy(t, one)

	first.kill()
	second.leading(t)
	acts()
	held.wasHeldBy(t, one, two)
	if early := held.takenEarly(one, two); early > 0 {
		t.Errorf("the lease was taken over %s before it had run out", early)
	}

	third, three := start()
	if code := second.stop(t); code != 0 {
		t.Errorf("asked to end, the leader ended with %d", code)
	}
	third.leading(t)
	acts()
	if code := third.stop(t); code != 0 {
		t.Errorf("asked to end, the last one ended with %d", code)
	}
	held.wasHeldBy(t, one, two, "", three, "")
}

// leaseLog is every state that a lease has been in.
type leaseLog struct {
	mu     sync.Mutex
	states []coordinationv1.LeaseSpec
}

// followLease watches the lease of a namespace that has none as yet.
func followLease(t testing.TB, c client.WithWatch, namespace string) *leaseLog {
	t.Helper()
	watch, err := c.Watch(t.Context(), &coordinationv1.LeaseList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	log := &leaseLog{}
	go func() {
		for event := range watch.ResultChan() {
			if lease, ok := event.Object.(*coordinationv1.Lease); ok {
				log.mu.Lock()
				log.states = append(log.states, lease.Spec)
				log.mu.Unlock()
			}
		}
	}()
	return log
}

// heldBy are the states with this holder.
func (l *leaseLog) heldBy(holder string) []coordinationv1.LeaseSpec {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.states), func(s coordinationv1.LeaseSpec) bool { return ptr.Deref(s.HolderIdentity, "") != holder })
}

// wasHeldBy waits until these have held the lease, one after the other and no others; an empty name is that it was free.
func (l *leaseLog) wasHeldBy(t testing.TB, want ...string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		var holders []string
		for _, s := range l.states {
			holders = append(holders, ptr.Deref(s.HolderIdentity, ""))
		}
		if holders = slices.Compact(holders); !slices.Equal(holders, want) {
			return fmt.Errorf("the lease was held by %q, want %q", holders, want)
		}
		return nil
	})
}

// takenEarly is how much of the lease was left when another one took it, by what both wrote into it.
func (l *leaseLog) takenEarly(from, by string) time.Duration {
	before, after := l.heldBy(from), l.heldBy(by)
	last := before[len(before)-1]
	runsOut := last.RenewTime.Add(time.Duration(*last.LeaseDurationSeconds) * time.Second)
	return runsOut.Sub(after[0].AcquireTime.Time)
}

// TestServerGoesAway cuts a leader and one that stands by off from their API server, and gives it back to the latter.
func TestServerGoesAway(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	namespace := c.Namespace(t)
	start := func() (*process, *wire) {
		wire := newWire(t, c)
		wire.plugIn(t)
		p := startOperator(t, elsewhere(t, c, wire.address), append(otherPassage, lease(), "--leader-election-namespace", namespace)...)
		p.ready(t)
		return p, wire
	}
	says := func(p *process, path string, want int, text string) {
		t.Helper()
		address := p.address(t, "health probes")
		wait.Until(t, func(context.Context) error {
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
	if code := leader.exitCode(t); code != 1 {
		t.Errorf("the leader ended with %d", code)
	}
	want := regexp.MustCompile(`(?m)^error: lost the lease ` + namespace + `/fairlead: the API server https://` + first.address +
		` could not be reached for \d+s; start the operator again \(a Deployment does\)$`)
	if !want.MatchString(leader.lines.String()) {
		t.Error("the leader did not say why it ended")
	}
	says(other, "/readyz", http.StatusServiceUnavailable, "the API server https://"+second.address+" has not answered for ")
	says(other, "/healthz", http.StatusOK, "")

	second.setCut(false)
	other.leading(t)
	says(other, "/readyz", http.StatusOK, "")
	if code := other.stop(t); code != 0 {
		t.Errorf("the other ended with %d", code)
	}
}
