package operator

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviews is an API server that reviews tokens, of which "good" is one, and counts them.
func reviews(t *testing.T) (*rest.Config, *atomic.Int64) {
	t.Helper()
	asked := &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/apis/authorization.k8s.io/v1/subjectaccessreviews" {
			asked.Add(1)
			_ = json.NewEncoder(w).Encode(authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}})
			return
		}
		asked.Add(1)
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.Authenticated = review.Spec.Token == "good"
		review.Status.User.Username = "scraper"
		review.APIVersion, review.Kind = "authentication.k8s.io/v1", "TokenReview"
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}}, asked
}

// Strangers who call with made-up tokens do not make the operator ask the API server about each, and keep nobody out who calls from
// elsewhere.
func TestMetricsLimitReviews(t *testing.T) {
	config, asked := reviews(t)
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") })
	handler, err := requireToken(config, map[string]http.Handler{"GET /metrics": metrics}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	call := func(from, path, token string) int {
		request := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		request.RemoteAddr = from
		request.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		return w.Code
	}
	const flood = 500
	began, refused := time.Now(), 0
	for i := range flood {
		if call("10.0.0.9:1234", "/metrics", fmt.Sprint("made-up-", i)) == http.StatusTooManyRequests {
			refused++
		}
	}
	most := callBurst + int64(callsPerSecond*time.Since(began).Seconds()) + 1
	if got := asked.Load(); got > most || refused < flood-int(most) {
		t.Errorf("the API server is asked %d times, want %d at most; %d calls are refused", got, most, refused)
	}
	if code := call("10.0.0.1:1234", "/metrics", "good"); code != http.StatusOK {
		t.Errorf("who scrapes gets %d", code)
	}
	before := asked.Load()
	for i := range 10 {
		if code := call("10.0.0.2:1234", fmt.Sprint("/other/", i), "good"); code != http.StatusNotFound {
			t.Errorf("another path: %d", code)
		}
	}
	if asked.Load() != before {
		t.Errorf("for other paths the API server is asked %d times", asked.Load()-before)
	}
}

type addressed struct {
	net.Conn
	from   string
	closed *atomic.Int64
}

func (a *addressed) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a.from))
}

func (a *addressed) Close() error { a.closed.Add(1); return nil }

// accepted are connections that came before.
type accepted struct{ conns []net.Conn }

func (l *accepted) Accept() (net.Conn, error) {
	next := l.conns[0]
	l.conns = l.conns[1:]
	return next, nil
}
func (l *accepted) Close() error   { return nil }
func (l *accepted) Addr() net.Addr { return &net.TCPAddr{} }

// Connections that say nothing do not add up, and those of one address displace those of no other.
func TestConnectionsAreLimited(t *testing.T) {
	const limit, flood = 10, 100
	var conns []net.Conn
	server, strangers := &atomic.Int64{}, &atomic.Int64{}
	for i := range 3 {
		conns = append(conns, &addressed{from: fmt.Sprintf("10.0.0.1:%d", 1000+i), closed: server})
	}
	for i := range flood {
		conns = append(conns, &addressed{from: fmt.Sprintf("[fd00::%x]:%d", i+1, 2000+i), closed: strangers})
	}
	conns = append(conns, &addressed{from: "10.0.0.1:4000", closed: server})
	listener := limitConnections(&accepted{conns}, limit)
	var open []net.Conn
	for range conns {
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	if got, want := strangers.Load(), int64(flood+3+1-limit); got != want || server.Load() != 0 {
		t.Errorf("%d connections of strangers are closed, want %d, and %d of the API server", got, want, server.Load())
	}
	for range 2 { // closed twice, as servers do
		for _, conn := range open {
			_ = conn.Close()
		}
	}
	if l := listener.(*limitedListener); l.count != 0 || len(l.callers) != 0 {
		t.Errorf("%d connections are left, of %d addresses", l.count, len(l.callers))
	}
}
