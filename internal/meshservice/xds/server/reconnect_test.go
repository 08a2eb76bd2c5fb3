package server

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// leads is a configuration with listeners that lead to clusters: "a=x" by a route configuration of its own, "a:r=x,y" by route
// configuration r, and "a!x" without routes. It has these clusters and no others.
func leads(t testing.TB, version int, written string) *resource.Config {
	t.Helper()
	all := map[resource.Type][]*resource.Resource{}
	clusters, routes := map[string]bool{}, map[string]bool{}
	for _, one := range strings.Fields(written) {
		if name, to, direct := strings.Cut(one, "!"); direct {
			clusters[to] = true
			listener, err := build.Listener(build.Address{Name: name, Host: "127.0.0.1", Port: 80}, model.TCP, name, []build.WeightedCluster{{Name: to, Weight: 1}}, build.Settings{})
			r, err := build.Marshal(name, listener, err)
			if err != nil {
				t.Fatal(err)
			}
			all[resource.Listener] = append(all[resource.Listener], r)
			continue
		}
		listener, to, _ := strings.Cut(one, "=")
		name, route, several := strings.Cut(listener, ":")
		if !several {
			route = name
		}
		var shares []build.WeightedCluster
		for _, cluster := range strings.Split(to, ",") {
			clusters[cluster] = true
			shares = append(shares, build.WeightedCluster{Name: cluster, Weight: 1})
		}
		all[resource.Listener] = append(all[resource.Listener], callers.Listener(name, route))
		if routes[route] {
			continue
		}
		routes[route] = true
		built, err := build.Routes(route, model.HTTP, nil, shares, build.Settings{})
		r, err := build.Marshal(route, built, err)
		if err != nil {
			t.Fatal(err)
		}
		all[resource.Route] = append(all[resource.Route], r)
	}
	for name := range clusters {
		all[resource.Cluster] = append(all[resource.Cluster], callers.Cluster(name))
		all[resource.Endpoint] = append(all[resource.Endpoint], callers.Endpoints(name, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2), Port: 1000 + version}))
	}
	return resource.NewConfig(all)
}

// anyOrder is a pseudo-random order of the first requests of a reconnected proxy.
func anyOrder(random *rand.Rand) func([]resource.Type) {
	return func(types []resource.Type) {
		random.Shuffle(len(types), func(i, j int) { types[i], types[j] = types[j], types[i] })
	}
}

// followUp is quick, but waits for a proxy that reconnects to say what it has.
func followUp() Timing {
	return Timing{ClusterWarmup: 20 * time.Millisecond, RemovalDelay: 20 * time.Millisecond, ClientWait: wait.Deadline()}
}

// envoy is a model of one that is connected to a server until the test ends.
func envoy(t testing.TB, address string, order func([]resource.Type)) *callers.Envoy {
	t.Helper()
	e := callers.StartEnvoy(dial(t, address, nil), cart.String(), order)
	t.Cleanup(func() { e.Stop() })
	return e
}

// settles waits until the proxy has acknowledged a configuration and has no other clusters.
func settles(t testing.TB, store *Store, e *callers.Envoy, config *resource.Config) {
	t.Helper()
	var names []string
	for _, r := range config.Of(resource.Cluster) {
		names = append(names, r.Name)
	}
	// A proxy is current before it has asked for the routes of its listeners.
	leads := func(l *resource.Resource) bool { to, _ := e.Leads(l.Name); return len(to) > 0 }
	eventually(t, fmt.Sprintf("clusters %q", names), func() bool {
		return store.Connection(cart).Current && slices.Equal(e.Clusters(), names) && !slices.ContainsFunc(config.Of(resource.Listener), func(l *resource.Resource) bool { return !leads(l) })
	})
}

// An Envoy that reconnects to a control plane that knows nothing of it keeps its clusters until it has listeners and routes
// that lead elsewhere, whichever it asks for first.
func TestListenersKeepTheirClustersAcrossAReconnect(t *testing.T) {
	for name, c := range map[string]struct{ from, to string }{
		"listener by other routes":     {"a:r=x", "a:s=y"},
		"routes that change":           {"a:r=x", "a:r=y"},
		"listener without routes":      {"a!x", "a!y"},
		"listener goes":                {"a=x b=y", "b=y"},
		"listener comes":               {"a=x", "a=x b=y"},
		"one cluster of two goes":      {"a=x,y", "a=y"},
		"shared cluster goes":          {"a=x b!x", "a=y b!z"},
		"nothing changes":              {"a=x b!y", "a=x b!y"},
		"everything goes":              {"a=x b!y", ""},
		"listeners exchange clusters":  {"a=x b!y", "a=y b!x"},
		"listener of the same cluster": {"a:r=x", "b!x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, order := range [][]resource.Type{
				{resource.Cluster, resource.Endpoint, resource.Listener, resource.Route},
				{resource.Cluster, resource.Listener, resource.Route, resource.Endpoint},
				{resource.Route, resource.Listener, resource.Endpoint, resource.Cluster},
			} {
				from, to := leads(t, 1, c.from), leads(t, 2, c.to)
				store := NewStoreWithTiming(followUp())
				store.Set(cart, from)
				server := newServing(t, store)
				e := envoy(t, server.listener.Addr().String(), func(types []resource.Type) { copy(types, order) })
				settles(t, store, e, from)
				server.stop()
				next := NewStoreWithTiming(followUp())
				next.Set(cart, to)
				server.start(next)
				settles(t, next, e, to)
				for _, broken := range e.Stop() {
					t.Error(broken)
				}
				if t.Failed() {
					t.Fatalf("in order %v:\n%s", order, e.History())
				}
				server.stop()
			}
		})
	}
}

// The same with any changes in any order, by the same control plane and by others.
func TestListenersKeepTheirClustersAtRandom(t *testing.T) {
	seeds := 6
	if faults.Full() {
		seeds = 100
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 7))
			now := anyConfig(t, random, 0)
			store := NewStoreWithTiming(followUp())
			store.Set(cart, now)
			server := newServing(t, store)
			// The proxy reconnects in a goroutine of its own, and so has a source of its own.
			e := envoy(t, server.listener.Addr().String(), anyOrder(rand.New(rand.NewPCG(uint64(seed), 8))))
			settles(t, store, e, now)
			var steps []string
			for step := range 12 {
				next := anyConfig(t, random, step)
				var did string
				switch random.IntN(4) {
				case 0:
					did = "changes"
					store.Set(cart, next)
				case 1:
					did = "changes while the stream breaks"
					store.Set(cart, next)
					e.Break()
				default:
					did = "changes, and another control plane"
					server.stop()
					before := store
					store = NewStoreWithTiming(followUp())
					if random.IntN(2) == 0 {
						did += ", which finds what has gone"
						store.SetLookup(before.resourcesOf)
					}
					store.Set(cart, next)
					server.start(store)
				}
				steps = append(steps, fmt.Sprintf("%s to %s", did, describe(next)))
				if random.IntN(3) > 0 {
					settles(t, store, e, next)
				}
				now = next
			}
			settles(t, store, e, now)
			if broken := e.Stop(); len(broken) > 0 {
				t.Errorf("%s\n%s\n%s", strings.Join(broken, "\n"), strings.Join(steps, "\n"), e.History())
			}
			server.stop()
		})
	}
}

// resourcesOf is a Lookup of what a configuration has.
func (s *Store) resourcesOf(id model.ProxyID, clusters []string) *resource.Config {
	config := s.find(id).config
	found := map[resource.Type][]*resource.Resource{}
	for _, t := range resource.Types() {
		for _, name := range clusters {
			if r := config.Find(t, name); r != nil && t != resource.Listener {
				found[t] = append(found[t], r)
			}
		}
	}
	for _, r := range config.Of(resource.Listener) {
		if slices.Contains(clusters, s.references.of(r).routeConfig) {
			found[resource.Listener] = append(found[resource.Listener], r)
		}
	}
	return resource.NewConfig(found)
}

// anyConfig has up to three listeners that lead, by any of three route configurations or by none, to any of four clusters.
func anyConfig(t testing.TB, random *rand.Rand, version int) *resource.Config {
	t.Helper()
	routes := map[string]string{}
	var all []string
	for _, name := range []string{"a", "b", "c"}[:1+random.IntN(3)] {
		cluster := func() string { return string(rune('w' + random.IntN(4))) }
		if random.IntN(3) == 0 {
			all = append(all, name+"!"+cluster())
			continue
		}
		route := string(rune('r' + random.IntN(3)))
		if routes[route] == "" {
			routes[route] = cluster()
			if random.IntN(2) == 0 {
				routes[route] += "," + cluster()
			}
		}
		all = append(all, name+":"+route+"="+routes[route])
	}
	return leads(t, version, strings.Join(all, " "))
}

func describe(config *resource.Config) string {
	names := map[string]bool{}
	for _, r := range config.Of(resource.Cluster) {
		names[r.Name] = true
	}
	return fmt.Sprintf("%q", slices.Sorted(maps.Keys(names)))
}

// A client of gRPC that is led elsewhere while another control plane takes over is introduced to the cluster first, as it is
// by the same control plane.
func TestNoCallFailsWhenAnotherControlPlaneTakesOver(t *testing.T) {
	t.Parallel()
	east, west := echo(t, "127.0.0.2:0", "east"), echo(t, "127.0.0.3:0", "west")
	both := callers.Leads(target, tag, tag, map[string][]*net.TCPAddr{tag: {east.Address(), west.Address()}})
	local := callers.Leads(target, service, service, map[string][]*net.TCPAddr{service: {east.Address()}})
	store := NewStore()
	store.Set(cart, both)
	server := newServing(t, store)
	caller := startCalls(t, store, server.listener.Addr().String())
	for _, next := range []*resource.Config{local, both, local} {
		eventually(t, "an acknowledgement", func() bool { return store.Connection(cart).Current })
		caller.until("calls", func(now callers.Tally) bool { return now.Total() > 20 })
		server.stop()
		before := store
		store = NewStore()
		store.SetLookup(before.resourcesOf)
		store.Set(cart, next)
		server.start(store)
		caller.store = store
	}
	eventually(t, "the last acknowledgement", func() bool { return store.Connection(cart).Current })
	caller.stayIn("east")
	caller.end()
	server.stop()
}
