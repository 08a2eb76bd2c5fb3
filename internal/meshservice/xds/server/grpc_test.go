package server

import (
	"net"
	"testing"

	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/callers"
)

const target = "backend.mesh:80"

const tag, service = "backend", "backend__east_default_msvc_80"

// A client of gRPC is led from one cluster to another and back, at 50 calls a second, and the cluster that it comes from
// is taken away each time.
func TestNoCallFailsWhenItIsLedElsewhere(t *testing.T) {
	t.Parallel()
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

// calls are those of a client of gRPC, 50 a second, none of which may fail.
type calls struct {
	*callers.Caller
	t     testing.TB
	store *Store
}

func startCalls(t testing.TB, store *Store, server string) calls {
	t.Helper()
	caller, err := callers.Start(target, callers.Bootstrap{Server: server, Node: cart.String()}, 50)
	if err != nil {
		t.Fatal(err)
	}
	return calls{caller, t, store}
}

// until waits for enough of those from now on.
func (c calls) until(what string, enough func(callers.Tally) bool) {
	c.t.Helper()
	from := c.Tally()
	eventually(c.t, what, func() bool { return enough(c.Tally().Since(from)) })
}

// stayIn waits for a number of calls in a row that are all answered in a zone. Those that had begun before may be answered
// elsewhere.
func (c calls) stayIn(zone string) {
	c.t.Helper()
	from := c.Tally()
	eventually(c.t, "calls that all stay in "+zone, func() bool {
		tally := c.Tally()
		now := tally.Since(from)
		if now.Total() > now.Answered[zone] {
			from = tally
		}
		return now.Answered[zone] > 20 && now.Total() == now.Answered[zone]
	})
}

func inBothZones(now callers.Tally) bool {
	return now.Answered["east"] > 10 && now.Answered["west"] > 10
}

func (c calls) end() {
	c.t.Helper()
	end := c.Stop()
	c.t.Log(end)
	if end.Failed > 0 {
		c.t.Error("calls have failed")
	}
	if refusal := c.store.Connection(cart).NACK; refusal != "" {
		c.t.Error(refusal)
	}
}

func callThrough(t *testing.T, both, local *resource.Config) {
	t.Parallel()
	store := NewStore()
	store.Set(cart, both)
	caller := startCalls(t, store, serve(t, Options{Store: store}, nil))
	caller.until("calls to both zones", inBothZones)
	calls := 1
	if faults.Full() {
		calls = 1500
	}
	for again := true; again; again = caller.Tally().Total() < calls {
		store.Set(cart, local)
		eventually(t, "the acknowledgement of the switch", func() bool { return store.Connection(cart).Current })
		caller.stayIn("east")
		store.Set(cart, both)
		eventually(t, "the acknowledgement of the way back", func() bool { return store.Connection(cart).Current })
		caller.until("calls to both zones again", inBothZones)
	}
	caller.end()
	eventually(t, "the end of the connection", func() bool { return !store.Connection(cart).Connected })
}
