package server

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/callers"
)

// serving is a server that can be stopped, and be started again where it was. Its address is kept meanwhile, so that nobody
// else listens there, and whoever connects is cut off.
type serving struct {
	t        testing.TB
	listener net.Listener
	stop     func()

	mu   sync.Mutex
	life *life
}

// life is what one server listens at.
type life struct {
	net.Listener
	connections chan net.Conn
	over        chan struct{}
	once        sync.Once
}

func (l *life) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

func (l *life) Close() error {
	l.once.Do(func() { close(l.over) })
	return nil
}

// newServing listens until the test ends, and has a server.
func newServing(t testing.TB, store *Store) *serving {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &serving{t: t, listener: listener}
	s.start(store)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			now := s.life
			s.mu.Unlock()
			select {
			case now.connections <- c:
			case <-now.over:
				_ = c.Close()
			}
		}
	}()
	return s
}

func (s *serving) start(store *Store) {
	s.t.Helper()
	listener := &life{Listener: s.listener, connections: make(chan net.Conn), over: make(chan struct{})}
	s.mu.Lock()
	s.life = listener
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	options := Options{Store: store, Identify: Insecure, Namespaced: true, Log: testr.NewWithInterface(s.t, testr.Options{})}
	go func() { done <- NewServer(options).Serve(ctx, listener, insecure.NewCredentials()) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("the server ended with %v", err)
		}
	}
}

// A client of gRPC loses its control plane, and finds it again with another configuration, in which the cluster that it calls
// is no more.
func TestNoCallFailsWhenAClientReturns(t *testing.T) {
	t.Parallel()
	for name, routes := range map[string][2]string{
		"by other routes":       {tag, service},
		"by routes that change": {target, target},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			east, west := echo(t, "127.0.0.2:0", "east"), echo(t, "127.0.0.3:0", "west")
			returnTo(t,
				callers.Leads(target, routes[0], tag, map[string][]*net.TCPAddr{tag: {east.Address(), west.Address()}}),
				callers.Leads(target, routes[1], service, map[string][]*net.TCPAddr{service: {east.Address()}}))
		})
	}
}

func returnTo(t *testing.T, both, local *resource.Config) {
	store := NewStore()
	store.Set(cart, both)
	server := newServing(t, store)
	caller := startCalls(t, store, server.listener.Addr().String())
	for _, next := range []*resource.Config{local, both} {
		eventually(t, "an acknowledgement", func() bool { return store.Connection(cart).Current })
		caller.until("calls", func(now callers.Tally) bool { return now.Total() > 20 })
		server.stop()
		store.Set(cart, next)
		server.start(store)
	}
	eventually(t, "the last acknowledgement", func() bool { return store.Connection(cart).Current })
	caller.until("calls to both zones again", inBothZones)
	caller.end()
	server.stop()
}

// returning is a client that was led to the tag, on a stream of its own, under another configuration by now.
func returning(config *resource.Config, past ...*play) *session {
	p := &proxy{id: cart, config: config}
	for _, one := range past {
		p.rememberClosed(&one.streamState)
	}
	s := &session{proxy: p, state: streamState{timing: DefaultTiming(), references: newReferenceCache()}}
	p.sessions = append(p.sessions, s)
	return s
}

func (s *session) tells(t resource.Type, version string, names ...string) {
	asked := map[string]struct{}{}
	for _, name := range names {
		asked[name] = struct{}{}
	}
	s.state.types[t].subscribe(false, asked)
	s.resume(t, version)
}

func TestReturn(t *testing.T) {
	from := callers.Leads(target, tag, tag, map[string][]*net.TCPAddr{tag: nil})
	to := callers.Leads(target, service, service, map[string][]*net.TCPAddr{service: nil})
	tellsAll := func(s *session, version func(resource.Type) string) {
		for of, name := range map[resource.Type]string{resource.Listener: target, resource.Route: tag, resource.Cluster: tag, resource.Endpoint: tag} {
			s.tells(of, version(of), name)
		}
	}
	offered := func(s *session, of resource.Type) list {
		now := time.Now()
		next, _ := s.state.nextResources(of, to, s.state.planPrewarm(to, now), now)
		return next
	}
	t.Run("it is introduced from where it was", func(t *testing.T) {
		s := returning(to, client(from, tag, tag))
		tellsAll(s, from.Version)
		if waits, _ := s.isResuming(time.Now()); waits {
			t.Error("it has told all that it has, and is not answered")
		}
		if got := s.state.references.of(offered(s, resource.Listener)[0]).routeConfig; got != tag {
			t.Errorf("it is led by %s", got)
		}
		routes := s.state.references.of(offered(s, resource.Route).find(tag))
		if !slices.Equal(routes.clusters, []string{tag}) || !slices.Equal(routes.prewarmClusters, []string{service}) {
			t.Errorf("it is led to %v, with an introduction to %v", routes.clusters, routes.prewarmClusters)
		}
		if got := offered(s, resource.Cluster).find(tag); got == nil || !sameVersion(got, from.Find(resource.Cluster, tag)) {
			t.Errorf("of the cluster that it calls is left %v", got)
		}
	})
	t.Run("it is not led before it has told all", func(t *testing.T) {
		s := returning(to, client(from, tag, tag))
		s.tells(resource.Listener, from.Version(resource.Listener), target)
		waits, until := s.isResuming(s.state.resumedAt)
		if !waits || until.Sub(s.state.resumedAt) != s.state.timing.ClientWait {
			t.Errorf("it waits: %v, until %s", waits, until)
		}
		if waits, _ := s.isResuming(until); waits {
			t.Error("it waits for ever")
		}
	})
	t.Run("the stream is not known to have ended", func(t *testing.T) {
		s := returning(to)
		s.proxy.sessions = append(s.proxy.sessions, &session{proxy: s.proxy, state: client(from, tag, tag).streamState})
		tellsAll(s, from.Version)
		s.restore()
		if got := s.state.references.of(offered(s, resource.Listener)[0]).routeConfig; got != tag {
			t.Errorf("it is led by %s", got)
		}
	})
	t.Run("its last word was lost", func(t *testing.T) {
		before := client(from, tag, tag)
		before.become(to)
		before.now = before.now.Add(time.Hour)
		before.send(resource.Cluster)
		s := returning(to, before)
		s.tells(resource.Cluster, before.types[resource.Cluster].responses[0].wire, tag)
		s.restore()
		if got := offered(s, resource.Cluster).find(tag); got == nil || !sameVersion(got, from.Find(resource.Cluster, tag)) {
			t.Errorf("of the cluster that it calls is left %v", got)
		}
	})
	t.Run("nobody knows it", func(t *testing.T) {
		s := returning(to)
		tellsAll(s, from.Version)
		if waits, _ := s.isResuming(time.Now()); waits {
			t.Error("it waits for nothing")
		}
		if got := offered(s, resource.Cluster); got.find(tag) == nil {
			t.Errorf("the cluster that it calls is taken away: %v", got)
		}
	})
	t.Run("another control plane finds what it had", func(t *testing.T) {
		s := returning(to)
		had := NewStore()
		had.Set(cart, from)
		s.store = NewStore()
		s.store.SetLookup(had.resourcesOf)
		tellsAll(s, func(t resource.Type) string { return "unknown" })
		if waits, _ := s.isResuming(time.Now()); waits {
			t.Error("it waits for nothing")
		}
		if got := s.state.references.of(offered(s, resource.Listener)[0]).routeConfig; got != tag {
			t.Errorf("it is led by %s before it is introduced", got)
		}
		routes := s.state.references.of(offered(s, resource.Route).find(tag))
		if !slices.Equal(routes.clusters, []string{tag}) || !slices.Equal(routes.prewarmClusters, []string{service}) {
			t.Errorf("it is led to %v, with an introduction to %v", routes.clusters, routes.prewarmClusters)
		}
		for _, of := range []resource.Type{resource.Cluster, resource.Endpoint} {
			if got := offered(s, of).find(tag); got == nil || !sameVersion(got, from.Find(of, tag)) {
				t.Errorf("of type %d of the cluster that it calls is left %v", of, got)
			}
		}
	})
	t.Run("it is new", func(t *testing.T) {
		s := returning(to, client(from, tag, tag))
		tellsAll(s, func(resource.Type) string { return "" })
		if got := offered(s, resource.Cluster); len(got) > 0 {
			t.Errorf("it is given %v", got)
		}
		if got := s.state.references.of(offered(s, resource.Listener)[0]).routeConfig; got != service {
			t.Errorf("it is led by %s", got)
		}
	})
	t.Run("few are remembered of one that has few", func(t *testing.T) {
		s := returning(to, slices.Repeat([]*play{client(from, tag, tag)}, 100)...)
		if got := len(s.proxy.closedStreams); got != extraClosedStreams {
			t.Errorf("%d are", got)
		}
	})
	t.Run("all are remembered of a process with many targets", func(t *testing.T) {
		s := returning(to)
		s.proxy.maxSessions = DefaultLimits().Streams
		s.proxy.rememberClosed(&client(from, tag, tag).streamState)
		other := client(to, service, service)
		for range DefaultLimits().Streams - 1 {
			s.proxy.rememberClosed(&other.streamState)
		}
		tellsAll(s, from.Version)
		s.restore()
		if got := s.state.references.of(offered(s, resource.Listener)[0]).routeConfig; got != tag {
			t.Errorf("the first of them is led by %s", got)
		}
	})
	t.Run("it goes on after another was taken for it", func(t *testing.T) {
		alive := client(from, tag, tag)
		for range 2 {
			alive.become(to)
			alive.send(resource.Route)
			alive.become(from)
			alive.send(resource.Route)
		}
		one, _ := alive.closedStream()
		sent := alive.types[resource.Route].responses[0].wire
		alive.ack(resource.Route)
		if had, known := one.resourcesAt(resource.Route, sent); !known {
			t.Errorf("what was sent to it is forgotten, and %v left", had)
		}
	})
	t.Run("what it had is let go", func(t *testing.T) {
		s := returning(to, client(from, tag, tag))
		tellsAll(s, from.Version)
		s.isResuming(time.Now())
		if s.state.previous != nil {
			t.Error("it is kept although all is told")
		}
		s.state.types[resource.Route] = typeState{}
		s.tells(resource.Route, from.Version(resource.Route), tag)
		if s.state.previous != nil {
			t.Error("it returns twice")
		}
	})
}

// A proxy is counted with the most streams that it has had at once.
func TestMostStreams(t *testing.T) {
	store := NewStore()
	store.Set(cart, resource.NewConfig(nil))
	var all []*session
	for range 3 {
		one := &session{store: store}
		if err := store.addSession(cart, one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	for _, one := range all {
		store.removeSession(one)
	}
	if got := store.find(cart).maxSessions; got != 3 {
		t.Errorf("%d", got)
	}
}
