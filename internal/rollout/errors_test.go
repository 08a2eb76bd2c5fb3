package rollout

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestRetries: what fails again and again is not forgotten for minutes, for it may be promoting.
func TestRetries(t *testing.T) {
	limiter := newRateLimiter()
	for range 50 {
		if after := limiter.When(reconcile.Request{}); after > maxRetryDelay {
			t.Fatalf("it is tried again after %s", after)
		}
	}
}

// TestLasting: what may pass by itself is not told of at once, and all else is.
func TestLasting(t *testing.T) {
	stops, refused := errors.New("stops"), errors.New("refused")
	passes := fmt.Errorf("ensure Role shop/x: %w", transient{errors.New("reset")})
	got := applyErrors{stops, []error{passes, refused, passes}}.withoutTransient()
	if got.blocking != stops || len(got.tolerated) != 1 || got.tolerated[0] != refused {
		t.Errorf("it lasts: %+v", got)
	}
	p := newFailureBackoff()
	var worn []bool
	for range 3 {
		worn = append(worn, p.isPersistent(reconcile.Request{}.NamespacedName))
		p.next(reconcile.Request{}.NamespacedName, true)
	}
	p.next(reconcile.Request{}.NamespacedName, false)
	worn = append(worn, p.isPersistent(reconcile.Request{}.NamespacedName))
	if diff := cmp.Diff([]bool{false, false, true, false}, worn); diff != "" {
		t.Error(diff)
	}
}
