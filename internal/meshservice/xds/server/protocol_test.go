package server

import (
	"net"
	"slices"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/callers"
)

// config has the clusters of these names with endpoints, and listeners with routes that lead to each.
func config(version int, names ...string) *resource.Config {
	all := map[resource.Type][]*resource.Resource{}
	for _, name := range names {
		all[resource.Cluster] = append(all[resource.Cluster], callers.Cluster(name))
		all[resource.Endpoint] = append(all[resource.Endpoint], callers.Endpoints(name, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2), Port: 1000 + version}))
		all[resource.Listener] = append(all[resource.Listener], callers.Listener(name, name))
		all[resource.Route] = append(all[resource.Route], callers.Route(name, name))
	}
	return resource.NewConfig(all)
}

func brisk() Timing {
	return Timing{ClusterWarmup: 50 * time.Millisecond, RemovalDelay: 50 * time.Millisecond}
}

// proxyOf is one that behaves as Envoy does: it asks for all clusters and listeners.
func proxyOf(t testing.TB, address string, delta bool) *mirror {
	t.Helper()
	m := connect(t, dial(t, address, nil), cart.String(), delta)
	m.follows = true
	m.ask(resource.Cluster)
	m.ask(resource.Listener)
	return m
}

func TestAll(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		store := NewStoreWithTiming(brisk())
		store.Set(cart, config(1, "a", "b"))
		m := proxyOf(t, serve(t, Options{Store: store}, nil), delta)
		for _, step := range []struct {
			names []string
			want  string
		}{
			{[]string{"a", "b"}, "a b"},
			{[]string{"a", "b", "c"}, "a b c"},
			{[]string{"b", "d"}, "b d"},
			{nil, ""},
			{[]string{"a"}, "a"},
		} {
			store.Set(cart, config(1, step.names...))
			eventually(t, "the proxy has "+step.want, func() bool {
				for _, of := range resource.Types() {
					if m.knows(of) != step.want {
						return false
					}
				}
				return store.Connection(cart).Current
			})
		}
	})
}

func TestByName(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		store := NewStoreWithTiming(brisk())
		store.Set(cart, config(1, "a", "b"))
		m := connect(t, dial(t, serve(t, Options{Store: store}, nil), nil), cart.String(), delta)
		has := func(of resource.Type, want string) {
			t.Helper()
			eventually(t, "the proxy has "+want, func() bool { return m.knows(of) == want })
		}
		for _, of := range resource.Types() {
			m.ask(of, "b", "later")
			has(of, "b")
		}
		eventually(t, "all is acknowledged", func() bool { return store.Connection(cart).Current })
		store.Set(cart, config(1, "a", "b", "later"))
		for _, of := range resource.Types() {
			has(of, "b later")
			m.ask(of, "a", "later")
			has(of, "a later")
			m.ask(of, "a", "b", "later")
			has(of, "a b later")
		}
		eventually(t, "all is acknowledged", func() bool { return store.Connection(cart).Current })
	})
}

// What is asked for and is not there is said to be gone, so that the proxy need not wait.
func TestAbsentInDelta(t *testing.T) {
	store := NewStore()
	store.Set(cart, config(1, "a"))
	m := connect(t, dial(t, serve(t, Options{Store: store}, nil), nil), cart.String(), true)
	for _, of := range resource.Types() {
		m.ask(of, "a", "none")
	}
	eventually(t, "four answers", func() bool { return len(m.history()) == 4 })
	for _, n := range m.history() {
		if !slices.Equal(n.names, []string{"a"}) || !slices.Equal(n.gone, []string{"none"}) {
			t.Errorf("of type %d came %v without %v", n.of, n.names, n.gone)
		}
	}
}

// What a proxy has not, comes before what leads to it, and what it need not have goes after what led to it.
func TestNewBeforeOld(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		pace := Timing{ClusterWarmup: 100 * time.Millisecond, RemovalDelay: 100 * time.Millisecond}
		store := NewStoreWithTiming(pace)
		store.Set(cart, config(1, "old"))
		m := proxyOf(t, serve(t, Options{Store: store}, nil), delta)
		eventually(t, "the proxy has its first configuration", func() bool { return store.Connection(cart).Current })
		before := len(m.history())
		store.Set(cart, config(1, "new"))
		eventually(t, "the old is gone", func() bool { return m.knows(resource.Cluster) == "new" })

		seen := m.history()[before:]
		when := func(of resource.Type, name string) time.Time {
			t.Helper()
			for _, n := range seen {
				if n.of == of && slices.Contains(n.names, name) {
					return n.at
				}
			}
			t.Fatalf("%s of type %d has not come: %v", name, of, seen)
			return time.Time{}
		}
		met, led := when(resource.Endpoint, "new"), when(resource.Listener, "new")
		if met.Before(when(resource.Cluster, "new")) {
			t.Error("endpoints have come before their cluster")
		}
		// Each was seen before it was acknowledged, from which the server counts.
		if led.Sub(met) < pace.ClusterWarmup {
			t.Errorf("the listener has come %s after the endpoints", led.Sub(met))
		}
		last := seen[len(seen)-1]
		for _, n := range seen {
			if n.of == resource.Cluster {
				last = n
			}
		}
		if gone := last.at.Sub(when(resource.Route, "new")); gone < pace.RemovalDelay {
			t.Errorf("the old cluster has gone %s after the new route has come", gone)
		}
	})
}

// Of two configurations that differ in one cluster's endpoints only these are sent.
func TestOnlyWhatHasChanged(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		all := map[resource.Type][]*resource.Resource{}
		first := config(1, "a", "b", "c")
		for _, of := range resource.Types() {
			all[of] = slices.Clone(first.Of(of))
		}
		all[resource.Endpoint][1] = callers.Endpoints("b", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3), Port: 80})
		store := NewStoreWithTiming(brisk())
		store.Set(cart, first)
		m := proxyOf(t, serve(t, Options{Store: store}, nil), delta)
		// A proxy is current before it has asked for the routes of its listeners.
		eventually(t, "the proxy has its first configuration", func() bool {
			return m.knows(resource.Endpoint) == "a b c" && m.knows(resource.Route) == "a b c" && store.Connection(cart).Current
		})
		before := len(m.history())
		store.Set(cart, resource.NewConfig(all))
		eventually(t, "something comes", func() bool { return len(m.history()) > before })
		eventually(t, "it is acknowledged", func() bool { return store.Connection(cart).Current })
		if seen := m.history()[before:]; len(seen) != 1 || seen[0].of != resource.Endpoint || !slices.Equal(seen[0].names, []string{"b"}) {
			t.Errorf("the proxy was sent %v", seen)
		}
	})
}

// A proxy that comes back says what it has, and is not sent that again.
func TestComesBack(t *testing.T) {
	store := NewStore()
	now := config(1, "a", "b")
	store.Set(cart, now)
	m := connect(t, dial(t, serve(t, Options{Store: store}, nil), nil), cart.String(), true)
	m.mu.Lock()
	m.versions = map[string]string{"a": now.Find(resource.Cluster, "a").Version, "b": "older", "gone": "x"}
	m.mu.Unlock()
	m.ask(resource.Cluster)
	eventually(t, "an answer", func() bool { return len(m.history()) > 0 })
	// What is gone stays until the proxy has listeners that do not lead there.
	if n := m.history()[0]; !slices.Equal(n.names, []string{"b"}) || len(n.gone) > 0 {
		t.Errorf("it was sent %v without %v", n.names, n.gone)
	}
}

// A proxy that comes back and takes the state of the world keeps its listeners until it is sent others: an answer without any
// would take them away.
func TestComesBackWithListeners(t *testing.T) {
	store := NewStoreWithTiming(Timing{ClusterWarmup: 50 * time.Millisecond, ClientWait: 50 * time.Millisecond})
	store.Set(cart, config(1, "a", "b"))
	m := connect(t, dial(t, serve(t, Options{Store: store}, nil), nil), cart.String(), false)
	m.mu.Lock()
	m.follows = true
	for _, of := range []resource.Type{resource.Cluster, resource.Listener} {
		_ = m.stream.SendMsg(&discovery.DiscoveryRequest{TypeUrl: of.URL(), Node: m.node, VersionInfo: "of an earlier stream"})
	}
	m.mu.Unlock()
	eventually(t, "its listeners", func() bool { return m.knows(resource.Listener) == "a b" })
	for _, n := range m.history() {
		if n.of == resource.Listener && len(n.names) == 0 {
			t.Errorf("it was sent no listeners in between: %v", m.history())
		}
	}
}

// A proxy that asks again for what it has is sent it again.
func TestAsksAgain(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		store := NewStore()
		store.Set(cart, config(1, "a", "b"))
		m := connect(t, dial(t, serve(t, Options{Store: store}, nil), nil), cart.String(), delta)
		m.ask(resource.Endpoint, "a", "b")
		eventually(t, "an answer", func() bool { return m.knows(resource.Endpoint) == "a b" })
		m.ask(resource.Endpoint, "a")
		m.ask(resource.Endpoint, "a", "b")
		eventually(t, "another", func() bool { return len(m.history()) == 2 })
		if n := m.history()[1]; !slices.Equal(n.names, []string{"b"}) {
			t.Errorf("it was sent %v", n.names)
		}
	})
}
