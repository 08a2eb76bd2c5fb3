package operator

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/operator/lease"
)

func get(t *testing.T, handler http.Handler, path string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	body, err := io.ReadAll(recorder.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return recorder.Code, string(body)
}

func TestProbes(t *testing.T) {
	ready := &readiness{}
	monitor := &leaseMonitor{server: "https://192.0.2.1:6443", times: leaseTimesOf(defaultLeaseDuration)}
	probes := probesHandler(ready, monitor)

	ready.waitingFor("the API server")
	if code, _ := get(t, probes, "/healthz"); code != http.StatusOK {
		t.Errorf("an operator that waits for its API server is alive, but /healthz says %d", code)
	}
	if code, _ := get(t, probes, "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz says %d before it is ready", code)
	}
	if _, body := get(t, probes, "/readyz"); !strings.Contains(body, "waiting for the API server") {
		t.Errorf("/readyz does not say what is missing: %q", body)
	}

	ready.ready()
	if code, _ := get(t, probes, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz says %d when ready", code)
	}

	synctest.Test(t, func(t *testing.T) {
		monitor.recordRequest(time.Now().Add(-time.Minute))
		if code, _ := get(t, probes, "/readyz"); code != http.StatusServiceUnavailable {
			t.Errorf("/readyz says %d although the API server is silent", code)
		}
		if _, body := get(t, probes, "/readyz"); !strings.Contains(body, "has not answered for 1m0s") {
			t.Errorf("/readyz does not say what is wrong: %q", body)
		}
		if code, _ := get(t, probes, "/healthz"); code != http.StatusOK {
			t.Errorf("restarting it would not help, but /healthz says %d", code)
		}
	})
}

func TestMetricsTellTheBuild(t *testing.T) {
	code, body := get(t, metricsHandler(&leaseMonitor{}, nil, false), "/metrics")
	if code != http.StatusOK || !strings.Contains(body, "fairlead_build_info{commit=") {
		t.Errorf("%d\n%s", code, body)
	}
}

// TestPassageLeases: a passage that nobody leads yet has a metric, and one that holds has none.
func TestPassageLeases(t *testing.T) {
	h := holdsOf(map[string]*scriptedObserver{"adoption": {}, "revision": {full: runs}, "rollout": {}})
	h.looks(t, 0, "adoption", "rollout")
	monitor := &leaseMonitor{identity: "a", holders: []lease.Holder{{Passage: "rollout", Identity: "a"}}}
	leases := func(elects bool) []string {
		_, body := get(t, metricsHandler(monitor, h, elects), "/metrics")
		return slices.DeleteFunc(strings.Split(body, "\n"), func(line string) bool { return !strings.HasPrefix(line, "fairlead_passage_lease{") })
	}
	want := []string{`fairlead_passage_lease{holder="",passage="adoption"} 0`, `fairlead_passage_lease{holder="a",passage="rollout"} 1`}
	if diff := cmp.Diff(want, leases(true)); diff != "" {
		t.Error(diff)
	}
	monitor.holders = nil
	if got := leases(false); len(got) > 0 {
		t.Errorf("without leader election: %q", got)
	}
}
