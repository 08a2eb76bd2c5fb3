package meshservice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestTrafficOfNodeJS is TestStoryTraffic, and that a converted timeout holds, for gRPC of Node, which is an implementation of its
// own.
func TestTrafficOfNodeJS(t *testing.T) {
	if !faults.Full() {
		t.Skip("FAIRLEAD_TESTS=full calls from Node, whose libraries npm has to fetch")
	}
	directory := "../../../.cache/mesh-js"
	if err := callers.InstallNode("js", directory); errors.Is(err, callers.ErrNoNode) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	s := newStage(t, kumav1alpha1.ModeReachableBackendRefs)
	local, _ := s.echoes(t)
	bootstrap := s.served(t, "cart", s.target("backend"))
	c, err := callers.StartNode(directory, s.target("backend"), bootstrap, rate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if tally, err := c.Stop(); err != nil {
			t.Errorf("the caller ended with %v: %s", err, tally)
		}
	})
	answeredBy(t, c, east, west)
	s.until(t, meshService("backend", nil), func() error { return nil })
	for range 3 {
		s.migrate(t, "--batch-size", "1", "--consumers", s.consumer("cart"))
		s.concludes(t, metav1.ConditionTrue, kumav1alpha1.ReasonSwitched)
		answeredBy(t, c, east)
		s.migrate(t, "--revert")
		s.concludes(t, metav1.ConditionFalse, kumav1alpha1.ReasonReverted)
		answeredBy(t, c, east, west)
	}
	s.migrate(t, "--batch-size", "1")
	answeredBy(t, c, east)
	tally := c.Tally()
	t.Logf("%d calls: %s", tally.Total(), tally)
	if tally.Failed > 0 {
		t.Fatal("calls have failed")
	}

	const timeout = 300 * time.Millisecond
	converted := s.convert(t, s.timeout(t, "hasty", s.tag("backend"), timeout.String()))
	converted.Spec.To = converted.Spec.To[1:]
	s.create(t, converted)
	t.Cleanup(local.Hold())
	// The server ends a call after the same time: if Node hears of that before its own clock has run out, it calls that cancelled.
	wait.Until(t, func(context.Context) error {
		if given, limited := local.Timeout(); !limited || given > timeout {
			return fmt.Errorf("the last call was given a timeout of %s, want %s", given, timeout)
		}
		if now := c.Tally().Since(tally); now.Failed == 0 {
			return fmt.Errorf("no call has ended while the answer is held: %s", now)
		}
		return nil
	})
}
