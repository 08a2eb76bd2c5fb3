package revision_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// scrapable is the flag of an operator that tells its metrics to whoever is on this machine.
const scrapable = "--metrics-insecure-bind-address=127.0.0.1:0"

var metricsAddress = regexp.MustCompile(`name="insecure metrics" addr=(\S+)`)

// metrics of the operator by their names with their labels, as they are written on its page.
func (p *process) metrics(ctx context.Context) (map[string]float64, error) {
	found := metricsAddress.FindStringSubmatch(p.Log.Since(0))
	if found == nil {
		return nil, errors.New("the operator does not say where its metrics are")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+found[1]+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(string(page)) {
		at := strings.LastIndex(line, " ")
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if all[line[:at]], err = strconv.ParseFloat(strings.TrimSpace(line[at:]), 64); err != nil {
			return nil, fmt.Errorf("metric %s: %w", line, err)
		}
	}
	return all, nil
}

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
	all, err := p.metrics(t.Context())
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
		all, err := p.metrics(ctx)
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
