package faults

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// server stands for the far end of the line. It says yes to everything and
// remembers what reached it; what a real API server makes of a request is not
// the subject here.
type server struct {
	*httptest.Server
	hold chan struct{} // when set, writes are answered once it is closed

	mu      sync.Mutex
	arrived []string
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, req *http.Request) {
	r := describe(req)
	s.mu.Lock()
	s.arrived = append(s.arrived, r.Verb)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if Watch(r) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-req.Context().Done()
		return
	}
	if r.Writes() && s.hold != nil {
		<-s.hold
	}
	json.NewEncoder(w).Encode(corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: "shop"},
	})
}

func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.arrived...)
}

func (s *server) configMaps(t *testing.T, in *Injector) typedcorev1.ConfigMapInterface {
	t.Helper()
	cfg := &rest.Config{Host: s.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	clients, err := kubernetes.NewForConfig(in.Config(cfg))
	if err != nil {
		t.Fatal(err)
	}
	return clients.CoreV1().ConfigMaps("shop")
}

func cart() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: "shop"}}
}

func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		action Action
		is     func(error) bool
		log    string
	}{
		"conflict":          {Conflict(), apierrors.IsConflict, "409 (injected)"},
		"too many requests": {TooManyRequests(0), apierrors.IsTooManyRequests, "429 (injected)"},
		"internal error":    {InternalError(), apierrors.IsInternalError, "500 (injected)"},
		"expired":           {Expired(), apierrors.IsResourceExpired, "410 (injected)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			in := New(Rule{Match: To("configmaps", "update"), Nth: 2, Action: tc.action})
			cms := s.configMaps(t, in)
			for i, refused := range []bool{false, true, false} {
				_, err := cms.Update(t.Context(), cart(), metav1.UpdateOptions{})
				if refused && !tc.is(err) || !refused && err != nil {
					t.Errorf("update %d: refused should be %v, got %v", i+1, refused, err)
				}
			}
			if got := len(s.seen()); got != 2 {
				t.Errorf("%d updates reached the server, want 2", got)
			}
			if got := in.Log()[1].Result; got != tc.log {
				t.Errorf("the log says %q, want %q", got, tc.log)
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	in := New(Rule{Match: Write, Nth: 1, Action: TooManyRequests(time.Second)})
	begin := time.Now()
	if _, err := s.configMaps(t, in).Update(t.Context(), cart(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("the client came back after %s", took)
	}
	if got := in.Log().Count(Write); got != 2 {
		t.Errorf("%d attempts, want 2:\n%s", got, in.Log())
	}
}

func TestCut(t *testing.T) {
	tests := map[string]struct {
		action  Action
		arrived []string
		log     string
	}{
		"before": {CutBefore(), []string{"update"}, "never sent, the process was cut off here"},
		"after":  {CutAfter(), []string{"update", "update"}, "200, but the process was cut off before it heard"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			in := New(Rule{Match: Write, Nth: 2, Action: tc.action})
			cms := s.configMaps(t, in)
			if _, err := cms.Update(t.Context(), cart(), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if closed(in.Dead()) {
				t.Error("dead too early")
			}
			if _, err := cms.Update(t.Context(), cart(), metav1.UpdateOptions{}); !errors.Is(err, ErrCut) {
				t.Errorf("the second update got %v, want ErrCut", err)
			}
			if !closed(in.Dead()) {
				t.Error("not dead after the cut")
			}
			if _, err := cms.Get(t.Context(), "cart", metav1.GetOptions{}); !errors.Is(err, ErrCut) {
				t.Errorf("a read after the cut got %v, want ErrCut", err)
			}
			if diff := cmp.Diff(tc.arrived, s.seen()); diff != "" {
				t.Errorf("reached the server (-want +got):\n%s", diff)
			}
			if got := in.Log()[1].Result; got != tc.log {
				t.Errorf("the log says %q, want %q", got, tc.log)
			}
		})
	}
}

func TestCutSeversWatches(t *testing.T) {
	s := newServer(t)
	in := New()
	w, err := s.configMaps(t, in).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	in.Cut()
	late := time.After(wait.Deadline())
	for {
		select {
		case _, open := <-w.ResultChan():
			if !open {
				return
			}
		case <-late:
			t.Fatal("the watch is still open")
		}
	}
}

func TestWriteUnderWayArrivesDespiteTheCut(t *testing.T) {
	s := newServer(t)
	s.hold = make(chan struct{})
	in := New()
	cms := s.configMaps(t, in)
	ctx, kill := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := cms.Update(ctx, cart(), metav1.UpdateOptions{})
		result <- err
	}()
	eventually(t, "the write to arrive", func() bool { return len(s.seen()) == 1 })

	in.Cut()
	kill()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := in.Drain(ended); err == nil {
		t.Error("drained while a write is under way")
	}
	close(s.hold)
	if err := in.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-result; err == nil {
		t.Error("the dead process heard of its last write")
	}
	if got := in.Log()[0].Result; got != "200" {
		t.Errorf("the log says %q, want 200", got)
	}
}

func TestCutAmongConcurrentWrites(t *testing.T) {
	s := newServer(t)
	in := New(Rule{Match: Write, Nth: 10, Action: CutBefore()})
	cms := s.configMaps(t, in)
	var writers sync.WaitGroup
	for range 40 {
		writers.Go(func() { cms.Update(t.Context(), cart(), metav1.UpdateOptions{}) })
	}
	writers.Wait()
	if got := len(s.seen()); got != 9 {
		t.Errorf("%d writes reached the server, want 9", got)
	}
	if got := len(in.Log()); got != 10 {
		t.Errorf("%d writes in the log, want 10:\n%s", got, in.Log())
	}
}

func TestHold(t *testing.T) {
	tests := map[string]struct {
		release func(until chan struct{}, in *Injector, cancel func())
		want    error
		arrived int
	}{
		"until it is released":   {func(until chan struct{}, _ *Injector, _ func()) { close(until) }, nil, 1},
		"until the caller stops": {func(_ chan struct{}, _ *Injector, cancel func()) { cancel() }, context.Canceled, 0},
		"until the process ends": {func(_ chan struct{}, in *Injector, _ func()) { in.Cut() }, ErrCut, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, until := newServer(t), make(chan struct{})
			in := New(Rule{Match: Write, Action: Hold(until)})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result := make(chan error, 1)
			go func() {
				_, err := s.configMaps(t, in).Update(ctx, cart(), metav1.UpdateOptions{})
				result <- err
			}()
			eventually(t, "the write to be held", func() bool { return in.Log().Count(Write) == 1 })
			if arrived := s.seen(); len(arrived) > 0 {
				t.Errorf("the server got %v", arrived)
			}
			tc.release(until, in, cancel)
			if err := <-result; !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if arrived := s.seen(); len(arrived) != tc.arrived {
				t.Errorf("the server got %v", arrived)
			}
		})
	}
}

func TestRulesCompose(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(until chan struct{}, cancel func())
		want func(error) bool
	}{
		"held":     {func(_ chan struct{}, cancel func()) { cancel() }, func(err error) bool { return errors.Is(err, context.Canceled) }},
		"released": {func(until chan struct{}, _ func()) { close(until) }, apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			s, until := newServer(t), make(chan struct{})
			in := New(Rule{Match: Write, Action: Hold(until)}, Rule{Match: Write, Nth: 1, Action: Conflict()})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			result := make(chan error, 1)
			go func() {
				_, err := s.configMaps(t, in).Update(ctx, cart(), metav1.UpdateOptions{})
				result <- err
			}()
			eventually(t, "the write to be held", func() bool { return in.Log().Count(Write) == 1 })
			c.end(until, cancel)
			if err := <-result; !c.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	s := newServer(t)
	in := New()
	cms := s.configMaps(t, in)
	cms.Create(t.Context(), cart(), metav1.CreateOptions{})
	cms.Update(t.Context(), cart(), metav1.UpdateOptions{})
	cms.Get(t.Context(), "cart", metav1.GetOptions{})
	cms.Update(t.Context(), cart(), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if diff := cmp.Diff(map[string]int{"configmaps": 2}, in.Log().ByKind()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := "  1  create configmaps shop/cart -> 200\n  2  update configmaps shop/cart -> 200"
	if diff := cmp.Diff(want, in.Log().String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		if !is() {
			return errors.New("waited for " + what)
		}
		return nil
	})
}
