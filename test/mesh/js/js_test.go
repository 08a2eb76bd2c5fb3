// Package js_test looks at the mesh through gRPC for Node, which is an implementation of its own.
package js_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/meshservice/ads"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/callers"
)

const target = "backend.mesh:80"

func TestNoCallOfNodeFails(t *testing.T) {
	if !faults.Full() {
		t.Skip("FAIRLEAD_TESTS=full calls from Node, whose libraries npm has to fetch")
	}
	directory := "../../../.cache/mesh-js"
	if err := callers.InstallNode(".", directory); errors.Is(err, callers.ErrNoNode) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	east, west := echo(t, "127.0.0.2:0", "east"), echo(t, "127.0.0.3:0", "west")
	both := callers.Leads(target, "backend", "backend", map[string][]*net.TCPAddr{"backend": {east.Address(), west.Address()}})
	local := callers.Leads(target, "backend__east_default_msvc_80", "backend__east_default_msvc_80", map[string][]*net.TCPAddr{"backend__east_default_msvc_80": {east.Address()}})

	store := ads.NewStore()
	cart := model.ProxyID{Mesh: "default", Namespace: "shop", Name: "cart-0"}
	store.Set(cart, both)
	caller, err := callers.StartNode(directory, target, callers.Bootstrap{Server: serve(t, store), Node: cart.String()}, 50)
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			tally, err := caller.Stop()
			t.Log(tally, err)
		}
	})
	until := func(what string, enough func(callers.Tally) bool) {
		t.Helper()
		from := caller.Tally()
		await(t, what, func() bool { return enough(caller.Tally().Since(from)) })
	}
	for range 5 {
		until("calls to both zones", func(now callers.Tally) bool { return now.Answered["east"] > 20 && now.Answered["west"] > 20 })
		store.Set(cart, local)
		await(t, "the acknowledgement of the switch", func() bool { return store.Connection(cart).Current })
		await(t, "a second with calls to the zone alone", func() bool {
			before := caller.Tally()
			until("calls", func(now callers.Tally) bool { return now.Total() > 20 })
			return caller.Tally().Since(before).Answered["west"] == 0
		})
		store.Set(cart, both)
		await(t, "the acknowledgement of the way back", func() bool { return store.Connection(cart).Current })
	}
	stopped = true
	tally, err := caller.Stop()
	t.Log(tally)
	if err != nil || tally.Failed > 0 {
		t.Errorf("calls have failed, or the caller: %v", err)
	}
}

func echo(t *testing.T, address, zone string) *callers.Echo {
	t.Helper()
	e, err := callers.StartEcho(address, zone)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	return e
}

func serve(t *testing.T, store *ads.Store) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- ads.NewServer(ads.Options{Store: store, Identify: ads.Insecure{}, Namespaced: true}).Serve(ctx, listener, insecure.NewCredentials())
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("%s: not within a minute", what)
		case <-ticker.C:
		}
	}
}
