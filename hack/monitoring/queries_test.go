// Package monitoring checks the alerts and dashboards of the chart: every query against metrics that operators exposed after the stories
// of their passages, as testdata has them, and every alert for its tests and its page.
//
// The end-to-end tests compare these records with what operators expose (harness.CompareMetrics), and record them again.
package monitoring

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/util/teststorage"
	"go.yaml.in/yaml/v3"
)

const chart = "../../charts/fairlead"

// rule is an alert.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	readYAML(t, filepath.Join(chart, "monitoring", "alerts.yaml"), &file)
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// scrapes is how often the records are scraped, each time with the same values.
const scrapes, interval = 60, 30 * time.Second

// exposed has every series of the records, by the name of the record in the label pod, as Prometheus would add it.
func exposed(t *testing.T) *teststorage.TestStorage {
	t.Helper()
	files, err := filepath.Glob("testdata/*.prom")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records: %v", err)
	}
	var load strings.Builder
	fmt.Fprintf(&load, "load %s\n", interval)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pod := strings.TrimSuffix(filepath.Base(file), ".prom")
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
			if value == "" {
				series, value, _ = strings.Cut(strings.TrimSpace(line), " ")
				series += "{"
			} else {
				series += ","
			}
			fmt.Fprintf(&load, "  %spod=%q} %s+0x%d\n", series, pod, value, scrapes)
		}
	}
	storage := promqltest.LoadedStorage(t, load.String())
	t.Cleanup(func() { _ = storage.Close() })
	return storage
}

// query is one of an alert or a dashboard.
type query struct{ where, expr string }

// dashboardQueries are those of panels and of variables, with the values that Grafana gives variables.
func dashboardQueries(t *testing.T) []query {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart, "dashboards", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	var all []query
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Templating struct {
				List []struct {
					Name, Definition string
				}
			}
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		given := []string{"$__rate_interval", "5m"}
		for _, v := range board.Templating.List {
			given = append(given, "$"+v.Name, ".*")
			if v.Definition == "" {
				continue
			}
			metric, label, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"), ", ")
			if !ok {
				t.Errorf("%s: the variable %s is %s", file, v.Name, v.Definition)
			}
			all = append(all, query{filepath.Base(file) + ", variable " + v.Name, fmt.Sprintf("count by (%s) (%s)", label, metric)})
		}
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				expr := strings.NewReplacer(given...).Replace(target.Expr)
				all = append(all, query{filepath.Base(file) + ", panel " + panel.Title, expr})
			}
		}
	}
	return all
}

// Every metric that a query selects was exposed, with the labels that the query selects by, groups by or joins on.
func TestQueriesUseExposedMetrics(t *testing.T) {
	storage := exposed(t)
	queries := dashboardQueries(t)
	for _, alert := range alerts(t) {
		queries = append(queries, query{alert.Alert, alert.Expr})
	}
	for _, q := range queries {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
		if err != nil {
			t.Errorf("%s: %v", q.where, err)
			continue
		}
		parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			names := labelsOf(t, storage, selector.Name)
			if len(names) == 0 {
				t.Errorf("%s: nobody exposes %s", q.where, selector.Name)
				return nil
			}
			used := map[string]bool{}
			for _, matcher := range selector.LabelMatchers {
				used[matcher.Name] = true
			}
			for _, parent := range path {
				switch p := parent.(type) {
				case *parser.AggregateExpr:
					for _, name := range p.Grouping {
						used[name] = true
					}
				case *parser.BinaryExpr:
					if p.VectorMatching != nil {
						for _, name := range p.VectorMatching.MatchingLabels {
							used[name] = true
						}
					}
				}
			}
			for name := range used {
				if name != model.MetricNameLabel && !names[name] {
					t.Errorf("%s: %s has no label %s, but %v", q.where, selector.Name, name, slices.Sorted(maps.Keys(names)))
				}
			}
			return nil
		})
	}
}

// labelsOf are the names of the labels that series of a metric have.
func labelsOf(t *testing.T, storage *teststorage.TestStorage, metric string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, sample := range ask(t, storage, metric) {
		sample.Metric.Range(func(l labels.Label) { names[l.Name] = true })
	}
	return names
}

// The queries of dashboards answer: no panel is empty after the stories. With a comparison, it may be.
func TestDashboardsAnswer(t *testing.T) {
	storage := exposed(t)
	for _, q := range dashboardQueries(t) {
		q.expr = strings.ReplaceAll(q.expr, " > 0", "")
		// Of the leases, that of one passage is recorded.
		q.expr = lease.ReplaceAllString(q.expr, `$1{passage="meshservice"}`)
		if len(ask(t, storage, q.expr)) == 0 {
			t.Errorf("%s: no answer to %s", q.where, q.expr)
		}
	}
}

var lease = regexp.MustCompile(`(fairlead_passage_lease)\{passage="[a-z]+"\}`)

func ask(t *testing.T, storage *teststorage.TestStorage, expr string) promql.Vector {
	t.Helper()
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	asked, err := engine.NewInstantQuery(t.Context(), storage, nil, expr, time.Unix(0, 0).Add(scrapes*interval))
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer asked.Close()
	result := asked.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return slices.Clone(vector)
}

// Every alert has a test in which it fires, one in which it does not, and a section in the page of runbooks.
func TestEveryAlertIsTestedAndExplained(t *testing.T) {
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name     string `yaml:"alertname"`
				Expected []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	readYAML(t, "alerts_test.yaml", &file)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, alert := range test.Alerts {
			if len(alert.Expected) > 0 {
				fires[alert.Name] = true
			} else {
				quiet[alert.Name] = true
			}
		}
	}
	page, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range alerts(t) {
		if !fires[alert.Alert] || !quiet[alert.Alert] {
			t.Errorf("%s has a test in which it fires: %v, and one in which it does not: %v", alert.Alert, fires[alert.Alert], quiet[alert.Alert])
		}
		if !strings.Contains(string(page), "\n## "+alert.Alert+"\n") {
			t.Errorf("docs/runbooks.md has no section %s", alert.Alert)
		}
		if want := "/docs/runbooks.md#" + strings.ToLower(alert.Alert); !strings.HasSuffix(alert.Annotations["runbook_url"], want) {
			t.Errorf("%s leads to %s and not to %s", alert.Alert, alert.Annotations["runbook_url"], want)
		}
		for _, annotation := range []string{"summary", "description"} {
			if alert.Annotations[annotation] == "" {
				t.Errorf("%s has no %s", alert.Alert, annotation)
			}
		}
	}
}
