package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/wait"
)

var cart = model.ProxyID{Mesh: "default", Namespace: "shop", Name: "cart-0"}

// serve runs a server until the test ends, and says where.
func serve(t testing.TB, options Options, transport credentials.TransportCredentials) string {
	t.Helper()
	if options.Identify == nil {
		options.Identify = Insecure
	}
	if transport == nil {
		transport = insecure.NewCredentials()
	}
	options.Namespaced = true
	if _, benchmark := t.(*testing.B); !benchmark {
		options.Log = testr.NewWithInterface(t, testr.Options{})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- NewServer(options).Serve(ctx, listener, transport) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return listener.Addr().String()
}

func echo(t testing.TB, address, zone string) *callers.Echo {
	t.Helper()
	e, err := callers.StartEcho(address, zone)
	if errors.Is(err, syscall.EADDRNOTAVAIL) { // such as on macOS
		t.Skip("there are no further loopback addresses: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	return e
}

// eventually waits until something holds, and looks more often than wait.Until: here everything is in one process.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(wait.Deadline())
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("%s: not within %s", what, wait.Deadline())
		case <-ticker.C:
		}
	}
}

// connected are the proxies of a mesh that have a stream, in order.
func (s *Store) connected(mesh string) []model.ProxyID {
	s.mu.RLock()
	var all []*proxy
	for id, p := range s.proxies {
		if id.Mesh == mesh {
			all = append(all, p)
		}
	}
	s.mu.RUnlock()
	var connected []model.ProxyID
	for _, p := range all {
		p.mu.Lock()
		if len(p.sessions) > 0 && !p.gone {
			connected = append(connected, p.id)
		}
		p.mu.Unlock()
	}
	slices.SortFunc(connected, func(a, b model.ProxyID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return connected
}
