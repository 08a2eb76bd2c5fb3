package rollout

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestRetries: what fails again and again is not forgotten for minutes, for it may be promoting.
func TestRetries(t *testing.T) {
	limiter := retries()
	for range 50 {
		if after := limiter.When(reconcile.Request{}); after > longestRetry {
			t.Fatalf("it is tried again after %s", after)
		}
	}
}
