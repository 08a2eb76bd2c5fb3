package revision_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// starting are those whose names begin alike.
func starting(metrics map[string]float64, prefix string) map[string]float64 {
	some := map[string]float64{}
	for name, value := range metrics {
		if strings.HasPrefix(name, prefix) {
			some[name] = value
		}
	}
	return some
}

// helmOperations are what the operator has done with Helm.
func (p *process) helmOperations(t testing.TB) map[string]float64 {
	t.Helper()
	all, err := p.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return starting(all, "fairlead_helm_operations_total")
}

// rest waits until the operator has looked at everything and has nothing left to look at.
func (p *process) rest(t testing.TB) {
	t.Helper()
	var before map[string]float64
	wait.Until(t, func(ctx context.Context) error {
		all, err := p.Metrics(ctx)
		if err != nil {
			return err
		}
		now := starting(all, "controller_runtime_reconcile_total")
		for _, controller := range []string{"istio", "istiorevision", "istiorevisiontag"} {
			sum := 0.0
			for _, n := range starting(now, fmt.Sprintf("controller_runtime_reconcile_total{controller=%q,", controller)) {
				sum += n
			}
			if sum == 0 {
				return fmt.Errorf("the controller %s has not looked at anything yet", controller)
			}
		}
		waiting := starting(all, "workqueue_depth")
		maps.Copy(waiting, starting(all, "controller_runtime_active_workers"))
		for name, n := range waiting {
			if n > 0 {
				return fmt.Errorf("the operator is at work: %s %v", name, n)
			}
		}
		// What failed a moment ago is waiting for its next attempt, and in no queue.
		if !cmp.Equal(before, now) {
			before = now
			return fmt.Errorf("the operator has been at work: %v", now)
		}
		return nil
	})
}
