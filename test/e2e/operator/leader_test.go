package operator_test

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/history"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// otherPassage is one whose operator does nothing to what the other tests of a cluster make.
var otherPassage = []string{"--passages", "meshservice"}

// TestStoryLeaders kills a leader, which another one replaces when the lease has run out, and ends the other, which releases
// the lease. Each of them runs in another namespace: a passage has one leader in the whole cluster.
func TestStoryLeaders(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Profile: "hub", KeepNamespaces: true})
	admin := administrator(t, c.Config())
	held := followLease(t, admin, "meshservice")
	start := func() (*process, string) {
		p := startOperator(t, c.Kubeconfig(), append(otherPassage, harness.LongLease(), harness.Scrapable, "--leader-election-namespace", c.Namespace(t))...)
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
	second.standsBy(t, "meshservice", one)
	acts()
	// An operator of another passage leads that one.
	startOperator(t, c.Kubeconfig(), "--passages", "adoption", harness.Lease()).leading(t)
	held.wereHeldBy(t, one)

	first.Kill()
	leads := func(p *process, holder string, value float64) {
		t.Helper()
		p.Measures(t, fmt.Sprintf(`fairlead_passage_lease{holder=%q,passage="meshservice"}`, holder), func(v float64) bool { return v == value })
	}
	leads(second, one, 0)
	held.end(t)
	second.leading(t)
	leads(second, two, 1)
	second.CompareMetrics(t, "operator")
	acts()
	held.wereHeldBy(t, one, two)
	if early := held.takenEarly(t, one, two); early > 0 {
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
	held.wereHeldBy(t, one, two, "", three, "")
}

// standsBy waits until the operator says, in its log, on /readyz and in a metric, that another one has the lease of a passage.
func (p *process) standsBy(t testing.TB, passage, holder string) {
	t.Helper()
	lease := "kube-system/fairlead-" + passage
	line := p.logged(t, "standing by: another operator leads the passage", "passage", passage, "lease", lease, "holder", holder)
	if !strings.Contains(fmt.Sprint(line["action"]), "--passages") {
		t.Errorf("the log does not say what to do: %v", line)
	}
	want, address := fmt.Sprintf("ok\npassage %s: held by %s (lease %s)\n", passage, holder, lease), p.address(t, "health probes")
	wait.Until(t, func(context.Context) error {
		if code, body := probe(t, address, "/readyz"); code != http.StatusOK || body != want {
			return fmt.Errorf("/readyz says %d: %s", code, body)
		}
		return nil
	})
}

// leases is every state that the lease of a passage has been in.
type leases struct {
	client client.Client
	lease  *coordinationv1.Lease
	*history.History[*coordinationv1.Lease]
}

func leaseOfPassage(passage string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "fairlead-" + passage}}
}

func followLease(t testing.TB, c client.WithWatch, passage string) leases {
	t.Helper()
	lease := leaseOfPassage(passage)
	return leases{c, lease, history.Follow[*coordinationv1.Lease](t, c, &coordinationv1.LeaseList{},
		client.InNamespace(lease.Namespace), client.MatchingFields{"metadata.name": lease.Name})}
}

// end shortens the lease of a leader that was killed, so that it expires at once.
func (l leases) end(t testing.TB) {
	t.Helper()
	if err := l.client.Patch(t.Context(), l.lease.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"leaseDurationSeconds":1}}`))); err != nil {
		t.Fatal(err)
	}
}

// meshLeases lets one test at a time have operators that elect the leader of meshservice in the shared cluster.
var meshLeases sync.Mutex

// electsMeshLeader waits until no other test does, and ends the lease that an operator of it has left when it was killed.
func electsMeshLeader(t testing.TB, admin client.Client) {
	t.Helper()
	meshLeases.Lock()
	t.Cleanup(meshLeases.Unlock)
	if err := client.IgnoreNotFound(admin.Delete(t.Context(), leaseOfPassage("meshservice"))); err != nil {
		t.Fatal(err)
	}
}

func holder(e history.Event[*coordinationv1.Lease]) string {
	return ptr.Deref(e.Object.Spec.HolderIdentity, "")
}

// wereHeldBy checks that these have held the lease, one after the other and no others; an empty name is that it was free.
func (l leases) wereHeldBy(t testing.TB, want ...string) {
	t.Helper()
	var holders []string
	for _, event := range l.Events(t) {
		holders = append(holders, holder(event))
	}
	if holders = slices.Compact(holders); !slices.Equal(holders, want) {
		t.Errorf("the lease was held by %q, want %q", holders, want)
	}
}

// takenEarly is how much of the lease was left when the next one took it, by what both wrote into it.
func (l leases) takenEarly(t testing.TB, from, by string) time.Duration {
	t.Helper()
	events := l.Events(t)
	for i := range events[1:] {
		if holder(events[i]) != from || holder(events[i+1]) != by {
			continue
		}
		last := events[i].Object.Spec
		runsOut := last.RenewTime.Add(time.Duration(*last.LeaseDurationSeconds) * time.Second)
		return runsOut.Sub(events[i+1].Object.Spec.AcquireTime.Time)
	}
	t.Fatalf("%s has not taken the lease from %s", by, from)
	return 0
}

// TestLeaderLosesAPIServer cuts a leader and one that stands by off from their API server, and gives it back to the latter.
func TestLeaderLosesAPIServer(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	electsMeshLeader(t, administrator(t, c.Config()))
	namespace := c.Namespace(t)
	start := func() (*process, *wire) {
		wire := newWire(t, c)
		wire.plugIn(t)
		p := startOperator(t, elsewhere(t, c, wire.address), append(otherPassage, harness.Lease(), "--leader-election-namespace", namespace)...)
		p.ready(t)
		return p, wire
	}

	leader, first := start()
	leader.leading(t)
	other, second := start()
	leader.answers(t, "/readyz", http.StatusOK, "")
	other.answers(t, "/readyz", http.StatusOK, "")

	first.setCut(true)
	second.setCut(true)
	if code := leader.exitCode(t); code != 1 {
		t.Errorf("the leader ended with %d", code)
	}
	want := regexp.MustCompile(`(?m)^error: lost the lease kube-system/fairlead-meshservice: the API server https://` + first.address +
		` could not be reached for \S+; start the operator again \(a Deployment does\)$`)
	if !want.MatchString(leader.Log.Since(0)) {
		t.Error("the leader did not say why it ended")
	}
	other.answers(t, "/readyz", http.StatusServiceUnavailable, "the API server https://"+second.address+" has not answered for ")
	other.answers(t, "/healthz", http.StatusOK, "")

	second.setCut(false)
	other.leading(t)
	other.answers(t, "/readyz", http.StatusOK, "")
	if code := other.stop(t); code != 0 {
		t.Errorf("the other ended with %d", code)
	}
}
