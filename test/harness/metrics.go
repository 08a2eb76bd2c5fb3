package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// Scrapable is the flag of an operator that shows its metrics to everybody on this machine.
const Scrapable = "--metrics-insecure-bind-address=127.0.0.1:0"

var metricsAddress = regexp.MustCompile(`name"?[=:]"insecure metrics",? ?"?addr"?[=:]"?([0-9.:]+)`)

// MetricsPage is what an operator that was started with Scrapable shows at /metrics.
func (p *Operator) MetricsPage(ctx context.Context) (string, error) {
	found := metricsAddress.FindStringSubmatch(p.Log.Since(0))
	if found == nil {
		return "", errors.New("the operator does not say where its metrics are")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+found[1]+"/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	return string(page), err
}

// Metrics are the values of the operator's series, by name and labels as they are written on the page.
func (p *Operator) Metrics(ctx context.Context) (map[string]float64, error) {
	page, err := p.MetricsPage(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(page) {
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

// Measures waits until a series of the operator has a value that suffices.
func (p *Operator) Measures(t testing.TB, series string, suffices func(float64) bool) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		all, err := p.Metrics(ctx)
		if err != nil {
			return errors.Join(err, p.Alive())
		}
		if value, found := all[series]; !found || !suffices(value) {
			return fmt.Errorf("%s is %v (exposed: %v)", series, value, found)
		}
		return nil
	})
}

// recordMetrics is the variable that has CompareMetrics record the metrics instead.
const recordMetrics = "FAIRLEAD_RECORD_METRICS"

// CompareMetrics compares the names and labels of the metrics that an operator exposes after a story with those that are recorded in
// hack/monitoring/testdata. The queries of alerts and dashboards are checked against these records.
func (p *Operator) CompareMetrics(t testing.TB, record string) {
	t.Helper()
	page, err := p.MetricsPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	CompareMetrics(t, record, page)
}

// CompareMetrics compares the names and labels of the metrics on a page with a record.
func CompareMetrics(t testing.TB, record, page string) {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "hack", "monitoring", "testdata", record+".prom")
	if os.Getenv(recordMetrics) != "" {
		if err := os.WriteFile(file, []byte(withoutNoise(page)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	exposed := shapes(page)
	for _, shape := range shapes(string(recorded)) {
		if !slices.Contains(exposed, shape) {
			t.Errorf("the operator does not expose %s, which %s has: alerts and dashboards may use it; record again with %s=1", shape, file, recordMetrics)
		}
	}
}

// kept are the metrics that alerts and dashboards may use.
var kept = regexp.MustCompile(`^(# (HELP|TYPE) )?(fairlead_|controller_runtime_reconcile_(total|time_seconds)|workqueue_depth|rest_client_requests_total)`)

// someBuckets are enough of a histogram.
var someBuckets = regexp.MustCompile(`_bucket\{.*le="(1|16|\+Inf)"`)

func withoutNoise(page string) string {
	var text strings.Builder
	for line := range strings.Lines(page) {
		if kept.MatchString(line) && (!strings.Contains(line, "_bucket{") || someBuckets.MatchString(line)) {
			text.WriteString(line)
		}
	}
	return text.String()
}

var labelNames = regexp.MustCompile(`([a-zA-Z_]+)="(?:[^"\\]|\\.)*"`)

// shapes are the series of a page without the values of labels.
func shapes(page string) []string {
	var all []string
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, labels, _ := strings.Cut(strings.TrimSpace(line), "{")
		name, _, _ = strings.Cut(name, " ")
		var names []string
		for _, found := range labelNames.FindAllStringSubmatch(labels, -1) {
			names = append(names, found[1])
		}
		slices.Sort(names)
		all = append(all, name+"{"+strings.Join(names, ",")+"}")
	}
	slices.Sort(all)
	return slices.Compact(all)
}
