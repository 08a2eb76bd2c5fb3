package scale_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// account is what a migration has asked of the API server.
type account struct {
	// deployments and namespaces are the patches of each, which nobody but the operator makes.
	deployments, namespaces float64
	// others are all other writes of the operator, events included; reported are those to resources of its own.
	others   float64
	reported requests
	// lists are those of everybody, of all that the operator reads.
	lists requests
	// tooMany is how often anybody was told to come later.
	tooMany float64
	// reconciles are those of the migration's controller, and reads all requests of the operator that are no writes.
	reconciles, reads float64
}

// pages are what operator and API server said at one moment.
type pages struct{ operator, server page }

func (m *mesh) pages(b *testing.B) pages {
	b.Helper()
	own, err := operatorPage(b.Context(), m.operator.address)
	if err != nil {
		b.Fatal(err)
	}
	server, err := serverPage(b.Context(), m.kube)
	if err != nil {
		b.Fatal(err)
	}
	return pages{own, server}
}

// asks is what the operator has asked for since it started.
func asks(operator page) (writes, reads float64) {
	const metric = "rest_client_requests_total"
	reads = operator.sum(metric, map[string]string{"method": "GET"})
	return operator.sum(metric, nil) - reads, reads
}

// since makes up the account. What the benchmark itself has written does not count.
func (p pages) since(before pages, own requests) account {
	made := requestsOf(p.server).since(requestsOf(before.server)).since(own)
	writes, reads := asks(p.operator)
	writesBefore, readsBefore := asks(before.operator)
	controller := map[string]string{"controller": "workload"}
	const reconciles = "controller_runtime_reconcile_total"
	a := account{
		deployments: made[asked{"PATCH", "deployments"}],
		namespaces:  made[asked{"PATCH", "namespaces"}],
		reported:    requests{},
		lists:       requests{},
		reconciles:  p.operator.sum(reconciles, controller) - before.operator.sum(reconciles, controller),
		reads:       reads - readsBefore,
	}
	a.others = writes - writesBefore - a.deployments - a.namespaces
	for what, count := range made {
		switch {
		case what.verb == "WATCH" || what.verb == "GET":
		case what.verb == "LIST" && (what.resource == "resourcequotas" || what.resource == "limitranges"):
			// The API server's own, before it makes the first pods in a namespace.
		case what == asked{"LIST", "services"}:
			// The API server's own, every few minutes, to repair its records of ports and addresses.
		case what.verb == "LIST":
			a.lists[what] = count
		case strings.HasPrefix(what.resource, "istio"):
			a.reported[what] = count
		}
	}
	for _, metric := range []struct {
		name   string
		labels map[string]string
	}{
		{"apiserver_request_total", map[string]string{"code": "429"}},
		{"apiserver_flowcontrol_rejected_requests_total", nil},
	} {
		a.tooMany += p.server.sum(metric.name, metric.labels) - before.server.sum(metric.name, metric.labels)
	}
	return a
}

// quietFor is longer than the operator waits before it writes down who else uses a revision.
const quietFor = 16 * time.Second

// quiet waits until the operator has written nothing for a while.
func (m *mesh) quiet(b *testing.B) {
	b.Helper()
	var count float64
	var since time.Time
	until(b, 2*time.Minute, func() bool {
		own, err := operatorPage(b.Context(), m.operator.address)
		if err != nil {
			b.Fatal(err)
		}
		if now, _ := asks(own); now != count {
			count, since = now, time.Now()
		}
		return time.Since(since) > quietFor
	})
}

func (a account) String() string {
	var kinds []string
	rest := a.others
	for _, what := range slices.SortedFunc(maps.Keys(a.reported), func(a, b asked) int { return cmp.Compare(a.resource, b.resource) }) {
		count := a.reported[what]
		kinds = append(kinds, fmt.Sprintf("%.0f %s", count, what.resource))
		rest -= count
	}
	return fmt.Sprintf("%.0f Deployments, %.0f namespaces, %.0f others (%s, %.0f events); %.0f reconciles, %.0f reads, lists: %s, 429: %.0f",
		a.deployments, a.namespaces, a.others, strings.Join(kinds, ", "), rest, a.reconciles, a.reads, a.lists, a.tooMany)
}
