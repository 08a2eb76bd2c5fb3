package operator

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
	probes := probesHandler(ready)

	ready.waitingFor("the API server")
	if code, _ := get(t, probes, "/healthz"); code != http.StatusOK {
		t.Errorf("an operator that waits for its API server is alive, but /healthz says %d", code)
	}
	if code, _ := get(t, probes, "/readyz"); code != http.StatusInternalServerError {
		t.Errorf("/readyz says %d before it is ready", code)
	}
	if _, body := get(t, probes, "/readyz/startup"); !strings.Contains(body, "waiting for the API server") {
		t.Errorf("/readyz/startup does not say what is missing: %q", body)
	}

	ready.ready()
	if code, _ := get(t, probes, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz says %d when ready", code)
	}
}

func TestMetricsTellTheBuild(t *testing.T) {
	code, body := get(t, metricsHandler(), "/metrics")
	if code != http.StatusOK || !strings.Contains(body, "fairlead_build_info{commit=") {
		t.Errorf("%d\n%s", code, body)
	}
}
