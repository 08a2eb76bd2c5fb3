// Package server serves each proxy its own configuration over the aggregated discovery service (ADS). It orders the
// responses so that no call fails, and tracks what each proxy has acknowledged.
package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Store holds the configuration of every proxy, and the state of its streams.
type Store struct {
	timing Timing
	// maxStreams bounds the streams of one proxy: a process has one for each gRPC target.
	maxStreams int
	// maxSubscriptions bounds the names that all streams of one proxy subscribe to, by subscriptionCost.
	maxSubscriptions int
	references       *referenceCache

	mu      sync.RWMutex
	proxies map[model.ProxyID]*proxy
	// proxiesPerMesh is how many proxies a mesh has.
	proxiesPerMesh map[string]int
	listeners      []func(model.ProxyID)
	lookup         Lookup
	// proxyAdded is closed and replaced when a proxy is added.
	proxyAdded chan struct{}
}

// proxy is a Dataplane whose proxy may connect.
type proxy struct {
	id model.ProxyID

	mu       sync.Mutex
	config   *resource.Config
	sessions []*session
	// subscriptions is what the names take that the sessions subscribe to, by subscriptionCost.
	subscriptions int
	// maxSessions is the most sessions that were open at once.
	maxSessions int
	// closedStreams are in the order in which they closed.
	closedStreams []closedStream
	gone          bool
}

// NewStore returns an empty store.
func NewStore() *Store { return NewStoreWithTiming(DefaultTiming()) }

// NewStoreWithTiming returns an empty store with other delays.
func NewStoreWithTiming(timing Timing) *Store {
	return &Store{timing: timing, maxStreams: DefaultLimits().Streams, maxSubscriptions: DefaultLimits().subscriptionBytes(), references: newReferenceCache(), proxies: map[model.ProxyID]*proxy{}, proxiesPerMesh: map[string]int{}, proxyAdded: make(chan struct{})}
}

// Set sets the configuration of a proxy without waiting for its streams; nil deletes the proxy.
func (s *Store) Set(id model.ProxyID, config *resource.Config) {
	if config == nil {
		s.delete(id)
		return
	}
	s.mu.Lock()
	p := s.proxies[id]
	if p == nil {
		s.proxies[id] = &proxy{id: id, config: config}
		s.proxiesPerMesh[id.Mesh]++
		close(s.proxyAdded)
		s.proxyAdded = make(chan struct{})
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()

	p.mu.Lock()
	if p.gone { // deleted concurrently
		p.mu.Unlock()
		s.Set(id, config)
		return
	}
	defer p.mu.Unlock()
	before := p.config
	p.config = config
	if before.Equal(config) {
		return
	}
	for _, session := range p.sessions {
		session.state.configChanged(before, config)
		session.sendUpdates()
	}
}

// delete deletes a proxy and closes its streams. With the last proxy of a mesh its metrics are deleted.
func (s *Store) delete(id model.ProxyID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proxies[id]
	if p == nil {
		return
	}
	delete(s.proxies, id)
	p.close()
	if s.proxiesPerMesh[id.Mesh]--; s.proxiesPerMesh[id.Mesh] == 0 {
		delete(s.proxiesPerMesh, id.Mesh)
		connectedProxies.DeleteLabelValues(id.Mesh)
		nacks.DeleteLabelValues(id.Mesh)
	}
}

// close closes the streams; no metric of the proxy is written afterwards.
func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	if len(p.sessions) > 0 {
		connectedProxies.WithLabelValues(p.id.Mesh).Dec()
	}
	for _, session := range p.sessions {
		session.end(status.Errorf(codes.Unavailable, "Dataplane %s of mesh %s is deleted", dataplaneName(p.id), p.id.Mesh))
	}
}

// OnChange registers a function that is called, without locks, when a proxy connects, disconnects or sends an ACK or NACK.
func (s *Store) OnChange(f func(model.ProxyID)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(slices.Clone(s.listeners), f)
}

// Lookup returns the resources of the clusters of these names as a proxy would be sent them, whether or not its
// configuration has them, with the routes and listeners that lead there. Names that mean nothing are left out.
type Lookup func(id model.ProxyID, clusters []string) *resource.Config

// SetLookup sets how resources of a reconnected proxy are found that its configuration no longer has. It is called before
// the store is served.
func (s *Store) SetLookup(lookup Lookup) { s.lookup = lookup }

func (s *Store) notify(id model.ProxyID) {
	s.mu.RLock()
	listeners := s.listeners
	s.mu.RUnlock()
	for _, listener := range listeners {
		listener(id)
	}
}

func (s *Store) find(id model.ProxyID) *proxy {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.proxies[id]
}

// waitForProxy waits until a proxy is added. A pod may be faster than its Dataplane, and a restarted control plane has no
// proxies yet: a rejected client fails its calls, a waiting one delays them.
func (s *Store) waitForProxy(ctx context.Context, id model.ProxyID) {
	timeout := time.NewTimer(s.timing.ClientWait)
	defer timeout.Stop()
	for {
		s.mu.RLock()
		_, known := s.proxies[id]
		added := s.proxyAdded
		s.mu.RUnlock()
		if known {
			return
		}
		select {
		case <-added:
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Connection returns the state of a proxy. With several streams, all have to be current.
func (s *Store) Connection(id model.ProxyID) model.Connection {
	p := s.find(id)
	if p == nil {
		return model.Connection{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connection()
}

func (p *proxy) connection() model.Connection {
	if len(p.sessions) == 0 {
		return model.Connection{}
	}
	c := model.Connection{Connected: true, Since: p.sessions[0].since, Current: true}
	for _, session := range p.sessions {
		c.Current = c.Current && session.state.isCurrent(p.config)
		c.NACK = cmp.Or(c.NACK, session.state.nackMessage())
	}
	return c
}

// addSession adds a stream to its proxy.
func (s *Store) addSession(id model.ProxyID, one *session) error {
	p := s.find(id)
	if p == nil {
		return unknownProxyError(id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
		return unknownProxyError(id)
	case len(p.sessions) >= s.maxStreams:
		return rejectf(causeStreams, codes.ResourceExhausted, "Dataplane %s of mesh %s has %d streams already: close some", dataplaneName(id), id.Mesh, s.maxStreams)
	}
	one.proxy = p
	p.sessions = append(p.sessions, one)
	p.maxSessions = max(p.maxSessions, len(p.sessions))
	if len(p.sessions) == 1 {
		connectedProxies.WithLabelValues(id.Mesh).Inc()
		// A rate needs the zero before the first NACK.
		nacks.WithLabelValues(id.Mesh)
	}
	return nil
}

// removeSession removes a stream from its proxy, if it was authenticated.
func (s *Store) removeSession(one *session) {
	p := one.proxy
	if p == nil {
		return
	}
	p.mu.Lock()
	before := len(p.sessions)
	p.sessions = slices.DeleteFunc(p.sessions, func(other *session) bool { return other == one })
	one.discharge()
	p.rememberClosed(&one.state)
	if before > 0 && len(p.sessions) == 0 && !p.gone {
		connectedProxies.WithLabelValues(p.id.Mesh).Dec()
	}
	one.stopTimer()
	p.mu.Unlock()
	s.notify(p.id)
}

// unknownProxyError is retryable: a pod may be faster than its Dataplane.
func unknownProxyError(id model.ProxyID) error {
	return rejectf(causeUnknownProxy, codes.Unavailable, "Dataplane %s does not exist in mesh %s, or the Mesh does not exist or is not served yet: create them, or correct the node id", dataplaneName(id), id.Mesh)
}

func dataplaneName(id model.ProxyID) string {
	return strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
}

var (
	connectedProxies = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_mesh_connected_proxies",
		Help: "Proxies of a mesh that are connected to this operator.",
	}, []string{"mesh"})
	nacks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_mesh_refusals_total",
		Help: "xDS responses that proxies of a mesh rejected (NACK).",
	}, []string{"mesh"})
)

func init() { metrics.Registry.MustRegister(connectedProxies, nacks) }
