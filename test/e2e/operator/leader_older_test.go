package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// olderOperator elects its leader as versions did that have no lease of passages: by one lease in the namespace of the release.
type olderOperator struct {
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	leading bool
	leader  string
}

func startOlderOperator(t testing.TB, config *rest.Config, namespace, identity string, lease time.Duration) *olderOperator {
	t.Helper()
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, "fairlead",
		resourcelock.ResourceLockConfig{Identity: identity}, config, lease*2/3)
	if err != nil {
		t.Fatal(err)
	}
	o := &olderOperator{ended: make(chan struct{})}
	set := func(change func()) {
		o.mu.Lock()
		defer o.mu.Unlock()
		change()
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: lease, RenewDeadline: lease * 2 / 3, RetryPeriod: lease / 8, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { set(func() { o.leading = true }) },
			OnStoppedLeading: func() { set(func() { o.leading = false }) },
			OnNewLeader:      func(identity string) { set(func() { o.leader = identity }) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, o.stop = context.WithCancel(t.Context())
	go func() { defer close(o.ended); elector.Run(ctx) }()
	t.Cleanup(func() { o.stop(); <-o.ended })
	return o
}

// sees waits until it leads, or sees that another one does.
func (o *olderOperator) sees(t testing.TB, leading bool, leader string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.leading != leading || o.leader != leader {
			return fmt.Errorf("the older version leads: %t, want %t; its leader is %q, want %q", o.leading, leading, o.leader, leader)
		}
		return nil
	})
}

// TestLeaderOfAnOlderVersion is an upgrade, and the way back: the older version and the new one never lead at once, though the older
// one knows nothing of leases of passages.
func TestLeaderOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	electsMeshLeader(t, administrator(t, c.Config()))
	namespace, duration := c.Namespace(t), min(wait.Deadline()/9, time.Minute)
	older := startOlderOperator(t, c.Config(), namespace, "older-1", duration)
	older.sees(t, true, "older-1")

	p := startOperator(t, c.Kubeconfig(), append(otherPassage, harness.LeaseOf(duration), "--leader-election-namespace", namespace)...)
	p.ready(t)
	p.logged(t, "standing by: an operator of an older version leads", "lease", namespace+"/fairlead", "holder", "older-1")
	p.answers(t, "/readyz", http.StatusOK, "all passages: held by older-1, an older version (lease "+namespace+"/fairlead)")

	// The Deployment ends the older pod; a last one of them, which stood by, does not take over.
	older.stop()
	<-older.ended
	p.leading(t)
	late := startOlderOperator(t, c.Config(), namespace, "older-2", duration)
	late.sees(t, false, "fairlead-passages")

	// Back to the older version.
	if code := p.stop(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
	late.sees(t, true, "older-2")
}
