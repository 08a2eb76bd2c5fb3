package server

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestRefusal(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		store := NewStoreWithTiming(brisk())
		store.Set(cart, config(1, "a"))
		m := connect(t, dial(t, serve(t, Options{Store: store}, nil), nil), cart.String(), delta)
		m.follows = true
		m.against = func(n news) string {
			for _, name := range n.names {
				if name == "bad" {
					return "I do not like bad"
				}
			}
			return ""
		}
		m.ask(resource.Cluster)
		m.ask(resource.Listener)
		eventually(t, "the first is acknowledged", func() bool { return store.Connection(cart).Current })

		store.Set(cart, config(1, "a", "bad"))
		eventually(t, "the refusal", func() bool { return store.Connection(cart).NACK == "Cluster: I do not like bad" })
		if store.Connection(cart).Current {
			t.Error("what was refused counts as acknowledged")
		}
		if has := m.knows(resource.Listener); has != "a" {
			t.Errorf("the proxy is led to a cluster that it has refused: %s", has)
		}
		// As long as the configuration has what was refused, the refusal stands.
		store.Set(cart, config(2, "a", "bad"))
		eventually(t, "the new endpoints", func() bool {
			history := m.history()
			return history[len(history)-1].of == resource.Endpoint
		})
		if store.Connection(cart).NACK == "" {
			t.Error("the refusal was forgotten")
		}
		store.Set(cart, config(2, "a", "good"))
		if refusal := store.Connection(cart).NACK; refusal != "" {
			t.Errorf("the refusal of something older stands: %s", refusal)
		}
		eventually(t, "the next is acknowledged", func() bool { return store.Connection(cart).Current })
	})
}

// A pod may be quicker than its Dataplane: who comes early waits, and is not refused.
func TestEarly(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		store := NewStoreWithTiming(Timing{ClientWait: wait.Deadline()})
		asked := make(chan struct{}, 1)
		m := connect(t, dial(t, serve(t, Options{Store: store}, nil), nil), cart.String(), delta)
		m.follows = true
		go func() {
			m.ask(resource.Cluster)
			m.ask(resource.Listener)
			asked <- struct{}{}
		}()
		<-asked
		store.Set(model.ProxyID{Mesh: "default", Namespace: "shop", Name: "another"}, config(1, "b"))
		store.Set(cart, config(1, "a"))
		eventually(t, "its own configuration", func() bool { return store.Connection(cart).Current && m.knows(resource.Listener) == "a" })
	})
}

func TestSeveralStreams(t *testing.T) {
	store := NewStoreWithTiming(brisk())
	store.Set(cart, config(1, "a"))
	address := serve(t, Options{Store: store}, nil)
	one, two := proxyOf(t, address, false), connect(t, dial(t, address, nil), cart.String(), true)
	eventually(t, "one has all", func() bool { return one.knows(resource.Route) == "a" })
	two.mu.Lock()
	two.silent = true
	two.mu.Unlock()
	two.ask(resource.Listener)
	eventually(t, "two has its listener", func() bool { return two.knows(resource.Listener) == "a" })
	if store.Connection(cart).Current {
		t.Error("one of two streams has acknowledged nothing, and yet all is current")
	}
	two.leave()
	eventually(t, "all is current without it", func() bool { return store.Connection(cart).Current })
	if got := store.connected("default"); len(got) != 1 || got[0] != cart {
		t.Errorf("connected are %v", got)
	}
	if got := store.connected("other"); len(got) != 0 {
		t.Errorf("connected in another mesh are %v", got)
	}
}

// Whoever is told of a change may ask what has changed, and change something.
func TestOnChange(t *testing.T) {
	store := NewStoreWithTiming(brisk())
	store.Set(cart, config(1, "a"))
	reported := make(chan model.Connection, 1000)
	store.OnChange(func(id model.ProxyID) {
		reported <- store.Connection(id)
		store.Set(id, config(1, "a"))
	})
	m := proxyOf(t, serve(t, Options{Store: store}, nil), false)
	await := func(what string, is func(model.Connection) bool) {
		t.Helper()
		deadline := time.After(wait.Deadline())
		for {
			select {
			case c := <-reported:
				if is(c) {
					return
				}
			case <-deadline:
				t.Fatal(what)
			}
		}
	}
	await("it was not told of the connection", func(c model.Connection) bool { return c.Connected && !c.Current && !c.Since.IsZero() })
	await("it was not told of the acknowledgement", func(c model.Connection) bool { return c.Current })
	m.leave()
	await("it was not told of the end", func(c model.Connection) bool { return !c.Connected })
}

// A proxy that acknowledges nothing, and one that does not even read, hold nobody up.
func TestNeverAcknowledges(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		store := NewStoreWithTiming(brisk())
		mute, deaf := model.ProxyID{Mesh: "default", Namespace: "shop", Name: "mute"}, model.ProxyID{Mesh: "default", Namespace: "shop", Name: "deaf"}
		var names []string
		for i := range 500 {
			names = append(names, fmt.Sprintf("%s-%d", strings.Repeat("long", 40), i))
		}
		for _, id := range []model.ProxyID{cart, mute, deaf} {
			store.Set(id, config(0, names...))
		}
		// A proxy that does not read is not disconnected, however long this takes.
		address := serve(t, Options{Store: store, Limits: Limits{SendTimeout: hour}}, nil)
		proxyOf(t, address, delta)
		silent := connect(t, dial(t, address, nil), mute.String(), delta)
		silent.mu.Lock()
		silent.silent = true
		silent.mu.Unlock()
		stuck := deafOf(t, address, deaf.String())
		for _, of := range resource.Types() {
			silent.ask(of, names...)
		}
		eventually(t, "one has all", func() bool { return store.Connection(cart).Current })
		eventually(t, "both others are connected", func() bool { return len(store.connected("default")) == 3 })
		goroutines := runtime.NumGoroutine()
		var next []*resource.Config
		for i := range 5 {
			next = append(next, config(i+1, names...))
		}
		for _, now := range next {
			for _, id := range []model.ProxyID{cart, mute, deaf} {
				store.Set(id, now)
			}
		}
		eventually(t, "the other goes on", func() bool { return store.Connection(cart).Current })
		for _, id := range []model.ProxyID{mute, deaf} {
			if c := store.Connection(id); c.Current || !c.Connected || c.NACK != "" {
				t.Errorf("%s is %+v", id, c)
			}
		}
		eventually(t, "no goroutines wait for the other two", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
		if seen := len(silent.history()); seen > 4 {
			t.Errorf("the one that acknowledges nothing was sent %d answers", seen)
		}
		store.Set(deaf, nil)
		if code := status.Code(stuck()); code != codes.Unavailable {
			t.Errorf("the one that does not read ends with %s", code)
		}
	})
}

// deafOf asks for everything and reads nothing, until the function is called that says how the stream has ended.
func deafOf(t testing.TB, address, node string) func() error {
	t.Helper()
	return deafOver(t, dial(t, address, nil), node)
}

func deafOver(t testing.TB, connection *grpc.ClientConn, node string) func() error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline())
	t.Cleanup(cancel)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []resource.Type{resource.Cluster, resource.Listener} {
		if err := stream.Send(&discovery.DiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: of.URL()}); err != nil {
			t.Fatal(err)
		}
	}
	return func() error {
		for {
			if _, err := stream.Recv(); err != nil {
				return err
			}
		}
	}
}

func TestNothingIsLeftOfThoseWhoLeave(t *testing.T) {
	store := NewStoreWithTiming(brisk())
	store.Set(cart, config(1, "a"))
	address := serve(t, Options{Store: store}, nil)
	connection := dial(t, address, nil)
	// What gRPC needs for the connection stays, and comes and goes by a few.
	first := connect(t, connection, cart.String(), false)
	first.ask(resource.Listener)
	eventually(t, "the first has its listener", func() bool { return first.knows(resource.Listener) == "a" })
	first.leave()
	eventually(t, "the first is gone", func() bool { return !store.Connection(cart).Connected })
	goroutines := runtime.NumGoroutine() + 10
	for range 20 {
		for _, delta := range protocols {
			m := connect(t, connection, cart.String(), delta)
			m.ask(resource.Cluster)
			m.ask(resource.Listener)
			eventually(t, "it has its listener", func() bool { return m.knows(resource.Listener) == "a" })
			store.Set(cart, config(2, "a", "b"))
			m.leave()
			store.Set(cart, config(1, "a"))
		}
	}
	eventually(t, "all are gone", func() bool { return !store.Connection(cart).Connected && runtime.NumGoroutine() <= goroutines })
}

func TestEnds(t *testing.T) {
	other := model.ProxyID{Mesh: "default", Namespace: "shop", Name: "nobody"}
	for name, c := range map[string]struct {
		node string
		then func(*Store, *mirror, context.CancelFunc)
		code codes.Code
		says string
	}{
		"no Dataplane": {other.String(), nil, codes.Unavailable, "Dataplane shop/nobody does not exist in mesh default"},
		"not an id":    {"cart", nil, codes.InvalidArgument, `node id "cart" is not MESH.NAME.NAMESPACE`},
		"no id":        {"", nil, codes.InvalidArgument, `node id ""`},
		"Dataplane is gone": {cart.String(), func(s *Store, _ *mirror, _ context.CancelFunc) { s.Set(cart, nil) },
			codes.Unavailable, "Dataplane shop/cart-0 of mesh default is deleted"},
		"another node": {cart.String(), func(_ *Store, m *mirror, _ context.CancelFunc) {
			m.mu.Lock()
			m.node = &corev3.Node{Id: other.String()}
			m.mu.Unlock()
			m.ask(resource.Route, "x")
		}, codes.InvalidArgument, "open a new stream for another node"},
		"the server stops": {cart.String(), func(_ *Store, _ *mirror, stop context.CancelFunc) { stop() },
			codes.Unavailable, "reconnect"},
	} {
		t.Run(name, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, delta bool) {
				store := NewStoreWithTiming(brisk())
				store.Set(cart, config(1, "a"))
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() {
					served <- NewServer(Options{Store: store, Identify: Insecure, Namespaced: true}).Serve(ctx, listener, insecure.NewCredentials())
				}()
				m := connect(t, dial(t, listener.Addr().String(), nil), c.node, delta)
				m.ask(resource.Listener)
				if c.then != nil {
					eventually(t, "the proxy has its listener", func() bool { return m.knows(resource.Listener) == "a" })
					c.then(store, m, stop)
				}
				if err := m.end(t); status.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
					t.Errorf("the stream ended with %v, want %s: %s", err, c.code, c.says)
				}
				eventually(t, "the proxy is not connected", func() bool { return !store.Connection(cart).Connected })
				stop()
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A stream whose proxy never says who it is. There is no connection to it, for that has to be made in the same time.
func TestSaysNothing(t *testing.T) {
	server := NewServer(Options{Store: NewStore(), FirstRequestTimeout: time.Millisecond})
	err := server.runStream(t.Context(), func(s *session) error {
		<-s.ctx.Done()
		return nil
	})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a stream without a request ended with %v", err)
	}
}

func TestForgottenAndWantedAgain(t *testing.T) {
	store := NewStore()
	var racing sync.WaitGroup
	for range 4 {
		racing.Go(func() {
			for range 200 {
				store.Set(cart, config(1, "a"))
				store.Set(cart, nil)
			}
		})
	}
	racing.Wait()
	store.Set(cart, config(1, "a"))
	if store.find(cart) == nil {
		t.Error("the proxy that was set last is not there")
	}
}
