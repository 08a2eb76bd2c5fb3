package ads

import (
	"net"
	"testing"

	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/meshservice/resource"
	"github.com/fairlead/fairlead/test/callers"
)

const target = "backend.mesh:80"

const tag, service = "backend", "backend__east_default_msvc_80"

// A client of gRPC is led from one cluster to another and back, at 50 calls a second, and the cluster that it comes from
// is taken away each time.
func TestNoCallFailsWhenItIsLedElsewhere(t *testing.T) {
	for name, routes := range map[string][2]string{
		"by other routes":       {tag, service},
		"by routes that change": {target, target},
	} {
		t.Run(name, func(t *testing.T) {
			east, west := echo(t, "127.0.0.2:0", "east"), echo(t, "127.0.0.3:0", "west")
			callThrough(t,
				callers.Leads(target, routes[0], tag, map[string][]*net.TCPAddr{tag: {east.Address(), west.Address()}}),
				callers.Leads(target, routes[1], service, map[string][]*net.TCPAddr{service: {east.Address()}}))
		})
	}
}

func callThrough(t *testing.T, both, local *resource.Config) {
	t.Parallel()
	store := NewStore()
	store.Set(cart, both)
	caller, err := callers.Start(target, callers.Bootstrap{Server: serve(t, Options{Store: store}, nil), Node: cart.String()}, 50)
	if err != nil {
		t.Fatal(err)
	}
	until := func(what string, enough func(callers.Tally) bool) {
		t.Helper()
		from := caller.Tally()
		eventually(t, what, func() bool { return enough(caller.Tally().Since(from)) })
	}
	until("calls to both zones", func(now callers.Tally) bool { return now.Answered["east"] > 10 && now.Answered["west"] > 10 })
	calls := 300
	if faults.Full() {
		calls = 1500
	}
	for caller.Tally().Total() < calls {
		store.Set(cart, local)
		eventually(t, "the acknowledgement of the switch", func() bool { return store.Connection(cart).Current })
		until("calls that all stay in the zone", func(now callers.Tally) bool { return now.Answered["west"] <= 50 && now.Answered["east"] > 100 })
		before := caller.Tally()
		until("calls", func(now callers.Tally) bool { return now.Total() > 20 })
		if after := caller.Tally().Since(before); after.Answered["west"] > 0 {
			t.Fatalf("after the switch: %s", after)
		}
		store.Set(cart, both)
		eventually(t, "the acknowledgement of the way back", func() bool { return store.Connection(cart).Current })
		until("calls to both zones again", func(now callers.Tally) bool { return now.Answered["east"] > 10 && now.Answered["west"] > 10 })
	}
	end := caller.Stop()
	t.Log(end)
	if end.Failed > 0 {
		t.Error("calls have failed")
	}
	if refusal := store.Connection(cart).Refusal; refusal != "" {
		t.Error(refusal)
	}
	eventually(t, "the end of the connection", func() bool { return !store.Connection(cart).Connected })
}
