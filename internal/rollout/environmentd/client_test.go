package environmentd

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/test/harness/environmentd"
)

var second = Address{Name: "mz", Namespace: "shop", ResourceID: "a1b2c3d4e5", Generation: 2}

// clientOf is one that waits for as long as it takes, unless it has a timeout.
func clientOf(t *testing.T, url string, timeout ...time.Duration) *Client {
	t.Helper()
	e, err := NewClient(Options{URL: url, Timeout: append(timeout, time.Hour)[0]})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLeaderAPI(t *testing.T) {
	cases := map[string]struct {
		manner environmentd.Manner
		// status and promote are what is heard, or the error.
		status, promote string
		ends            string
	}{
		"well": {
			status: "ReadyToPromote", ends: environmentd.IsLeader,
		},
		"catching up": {
			manner: environmentd.Manner{CatchesUp: true},
			status: "Initializing", promote: "environmentd refuses: cannot be promoted before it is ready", ends: environmentd.Initializing,
		},
		"refusing": {
			manner: environmentd.Manner{Refuses: "not on a Friday"},
			status: "ReadyToPromote", promote: "environmentd refuses: not on a Friday", ends: environmentd.ReadyToPromote,
		},
		"resetting": {
			manner: environmentd.Manner{Resets: true},
			status: "environmentd does not answer: connection reset", promote: "environmentd does not answer: connection reset",
			ends: environmentd.IsLeader,
		},
		"garbling": {
			manner: environmentd.Manner{Garbles: true},
			status: "environmentd sends an invalid response to /api/leader/status (HTTP 200)", ends: environmentd.IsLeader,
		},
		"garbling and refusing": {
			manner:  environmentd.Manner{Garbles: true, Refuses: "no"},
			status:  "environmentd sends an invalid response to /api/leader/status (HTTP 200)",
			promote: "environmentd sends an invalid response to /api/leader/promote (HTTP 400)", ends: environmentd.ReadyToPromote,
		},
		"forgetting": {
			manner: environmentd.Manner{Forgets: true}, status: "ReadyToPromote", ends: environmentd.ReadyToPromote,
		},
		"lingering": {
			manner: environmentd.Manner{Lingers: true}, status: "ReadyToPromote", ends: environmentd.Promoting,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fleet := environmentd.Start()
			defer fleet.Close()
			fleet.Behave(c.manner)
			client := clientOf(t, fleet.URL())
			status, err := client.Status(t.Context(), second)
			if got := text(string(status), err); got != c.status {
				t.Errorf("status: got %q, want %q", got, c.status)
			}
			if got := text("", client.Promote(t.Context(), second)); got != c.promote {
				t.Errorf("promote: got %q, want %q", got, c.promote)
			}
			e := fleet.Of("shop/mz/2")
			if e.Status() != c.ends {
				t.Errorf("ends as %s, want %s", e.Status(), c.ends)
			}
		})
	}
}

// TestNoAnswerInTime: a request that is not answered in time has an error that tells how long that is.
func TestNoAnswerInTime(t *testing.T) {
	const want = "environmentd does not answer: no response within 50ms"
	fleet := environmentd.Start()
	defer fleet.Close()
	client := clientOf(t, fleet.URL(), 50*time.Millisecond)
	fleet.Of("shop/mz/2").Behave(environmentd.Manner{Holds: "status"})
	if _, err := client.Status(t.Context(), second); text("", err) != want {
		t.Errorf("status: %v", err)
	}
	fleet.Of("shop/mz/2").Behave(environmentd.Manner{Holds: "promote"})
	if err := client.Promote(t.Context(), second); text("", err) != want {
		t.Errorf("promote: %v", err)
	}
	if got := fleet.Of("shop/mz/2").Status(); got != environmentd.ReadyToPromote {
		t.Errorf("it is %s", got)
	}
}

func TestDefaultTimeout(t *testing.T) {
	e, err := NewClient(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if e.http.Timeout != DefaultTimeout {
		t.Errorf("the timeout is %s", e.http.Timeout)
	}
}

func text(answer string, err error) string {
	if err != nil {
		return err.Error()
	}
	return answer
}

func TestSkipCatchup(t *testing.T) {
	fleet := environmentd.Start()
	defer fleet.Close()
	fleet.Behave(environmentd.Manner{CatchesUp: true})
	client := clientOf(t, fleet.URL())
	if err := client.SkipCatchup(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	e := fleet.Of("shop/mz/2")
	if e.Status() != environmentd.ReadyToPromote {
		t.Errorf("it is %s", e.Status())
	}
	if err := client.SkipCatchup(t.Context(), second); !errors.As(err, new(Refusal)) {
		t.Errorf("with nothing to skip: %v", err)
	}
	if diff := cmp.Diff([]string{"skip-catchup", "skip-catchup"}, e.Asked()); diff != "" {
		t.Error(diff)
	}
}

// TestNoSuchDemand: what an environmentd does not know it refuses, if it can be done without.
func TestNoSuchDemand(t *testing.T) {
	for code, refuses := range map[int]bool{http.StatusNotFound: true, http.StatusMethodNotAllowed: true, http.StatusInternalServerError: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		client := clientOf(t, server.URL)
		if err := client.SkipCatchup(t.Context(), second); err == nil || errors.As(err, new(Refusal)) != refuses {
			t.Errorf("HTTP %d to skip catch-up: %v", code, err)
		}
		if err := client.Promote(t.Context(), second); err == nil || errors.As(err, new(Refusal)) {
			t.Errorf("HTTP %d to promote: %v", code, err)
		}
		server.Close()
	}
}

// TestNobodyThere: what is told must be the same each time, for it is written into a status.
func TestNobodyThere(t *testing.T) {
	const address = "127.0.0.1:1" // a port that is given to no listener
	_, err := clientOf(t, "http://"+address).Status(t.Context(), second)
	if want := "environmentd does not answer: connection refused"; text("", err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestRedirected: somebody else's answer is not environmentd's.
func TestRedirected(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status": "IsLeader"}`))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer server.Close()
	status, err := clientOf(t, server.URL).Status(t.Context(), second)
	if err == nil || !strings.Contains(err.Error(), "HTTP 302") {
		t.Errorf("got %s, %v", status, err)
	}
}

func TestBaseURL(t *testing.T) {
	cases := map[string]struct{ template, want string }{
		"default":          {"", "http://mza1b2c3d4e5-environmentd-2.shop.svc.cluster.local:6878"},
		"all fields":       {"https://h/{{.Namespace}}/{{.Name}}/{{.ResourceID}}/{{.Generation}}/", "https://h/shop/mz/a1b2c3d4e5/2"},
		"without a scheme": {"{{.Name}}:6878", ""},
		"with a query":     {"http://h?g={{.Generation}}", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			template, err := Options{URL: c.template}.template()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := baseURL(template, second); got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
