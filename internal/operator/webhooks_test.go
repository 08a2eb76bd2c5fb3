package operator

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	materializev1alpha2 "github.com/fairlead/fairlead/api/materialize/v1alpha2"
	sailoperatorv1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/crds"
)

func TestWhichWebhooksThereAre(t *testing.T) {
	convert := func(logr.Logger, int64) http.Handler { return http.NotFoundHandler() }
	plain := Passage{Name: "plain", CRDs: []string{"istios.sailoperator.io"}}
	converting := Passage{Name: "converting", CRDs: []string{"materializes.materialize.cloud"}, Conversion: convert}
	cases := map[string]struct {
		passages  []Passage
		address   string
		serves    bool
		converted []string
	}{
		"no passage has any": {[]Passage{plain}, loopbackAnyPort, false, nil},
		"one converts":       {[]Passage{plain, converting}, loopbackAnyPort, true, converting.CRDs},
		"switched off":       {[]Passage{converting}, noListener, false, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := DefaultOptions()
			options.Webhook.BindAddress = c.address
			hooks := newWebhooks(&rest.Config{}, options, c.passages, logr.Discard())
			if (hooks != nil) != c.serves {
				t.Fatalf("served: %t", hooks != nil)
			}
			if hooks == nil {
				return
			}
			if diff := cmp.Diff(c.converted, hooks.converted); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSlowClients: whoever keeps a request open is cut off, and does not hold memory any longer.
func TestSlowClients(t *testing.T) {
	head := "POST /convert HTTP/1.1\r\nHost: webhook\r\n"
	cases := map[string]struct {
		send    string
		handler http.HandlerFunc
		reads   bool
		within  time.Duration
	}{
		"half a header": {head, nil, true, 10 * time.Second},
		// Cut off for its size, long before its time is over.
		"a header without end": {head + "A: " + strings.Repeat("a", 64<<10), nil, true, 2 * time.Second},
		"half a body":          {head + "Content-Length: 100\r\n\r\n{", readBody, true, 40 * time.Second},
		"no further request":   {head + "Content-Length: 0\r\n\r\n", readBody, true, 3 * time.Minute},
		"does not read":        {head + "Content-Length: 0\r\n\r\n", writeUntilRefused, false, 70 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, conn := net.Pipe()
				listener := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
				listener.conns <- conn
				cutOff := make(chan struct{})
				server := &http.Server{Handler: c.handler, ConnState: func(_ net.Conn, state http.ConnState) {
					if state == http.StateClosed {
						close(cutOff)
					}
				}}
				limitClients(server)
				go func() { _ = server.Serve(listener) }()
				go func() { _, _ = client.Write([]byte(c.send)) }()
				if c.reads {
					go func() { _, _ = io.Copy(io.Discard, client) }()
				}
				select {
				case <-cutOff:
				case <-time.After(c.within):
					t.Errorf("not cut off after %s", c.within)
				}
				_ = client.Close()
				_ = server.Close()
			})
		})
	}
}

func readBody(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

func writeUntilRefused(w http.ResponseWriter, _ *http.Request) {
	for {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return
		}
	}
}

// pipeListener has one connection, in memory.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestWhichKindsNeedTheWebhooks(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	hooks := &webhooks{converted: []string{"materializes.materialize.cloud"}}
	cases := map[string]struct {
		hooks *webhooks
		kind  client.Object
		want  bool
	}{
		"one that is converted":            {hooks, &materializev1alpha2.Materialize{}, true},
		"one that is not":                  {hooks, &sailoperatorv1.Istio{}, false},
		"nothing is converted":             {&webhooks{}, &materializev1alpha2.Materialize{}, false},
		"there are no webhooks to call to": {nil, &materializev1alpha2.Materialize{}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := c.hooks.convertsKind(c.kind, scheme); err != nil || got != c.want {
				t.Errorf("needed: %t, %v", got, err)
			}
		})
	}
}

// Every CRD belongs to one passage, or nobody would install it.
func TestPassagesBringAllCRDs(t *testing.T) {
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]int{}
	for _, name := range crdsOf(Passages()) {
		owners[name]++
	}
	for _, crd := range all {
		if owners[crd.Name] != 1 {
			t.Errorf("%s belongs to %d passages", crd.Name, owners[crd.Name])
		}
		delete(owners, crd.Name)
	}
	if len(owners) > 0 {
		t.Errorf("there are no CRDs %v", owners)
	}
}

func TestLingering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		later := withDelayedCancel(ctx, shutdownDelay)
		cancel()
		time.Sleep(shutdownDelay - time.Nanosecond)
		synctest.Wait()
		if later.Err() != nil {
			t.Error("it ended too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if later.Err() == nil {
			t.Error("it did not end")
		}
	})
}
