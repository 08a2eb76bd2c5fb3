package server

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// news is an answer as a proxy sees it.
type news struct {
	of    resource.Type
	names []string
	gone  []string
	at    time.Time
	nonce string
}

// mirror is a light proxy: it keeps what it is sent, and acknowledges it.
type mirror struct {
	delta  bool
	stream grpc.ClientStream
	cancel context.CancelFunc
	node   *corev3.Node

	mu      sync.Mutex
	has     [4]map[string]bool
	asked   [4][]string
	started [4]bool
	nonces  [4]string
	// versions are those that it says it has from an earlier stream.
	versions map[string]string
	seen     []news
	// silent has it acknowledge nothing.
	silent bool
	// against is what it has against an answer.
	against func(news) string
	// follows has it ask for the endpoints of its clusters, and for the routes of its listeners.
	follows bool
	ended   chan struct{}
	err     error
}

var protocols = map[string]bool{"state of the world": false, "delta": true}

// eachProtocol runs a test with either.
func eachProtocol(t *testing.T, test func(t *testing.T, delta bool)) {
	for name, delta := range protocols {
		t.Run(name, func(t *testing.T) { test(t, delta) })
	}
}

func dial(t testing.TB, address string, transport credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	if transport == nil {
		transport = insecure.NewCredentials()
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func connect(t testing.TB, connection *grpc.ClientConn, node string, delta bool) *mirror {
	t.Helper()
	return connectWith(t.Context(), t, connection, node, delta)
}

func connectWith(ctx context.Context, t testing.TB, connection *grpc.ClientConn, node string, delta bool) *mirror {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	m := &mirror{delta: delta, cancel: cancel, node: &corev3.Node{Id: node}, ended: make(chan struct{})}
	var err error
	if client := discovery.NewAggregatedDiscoveryServiceClient(connection); delta {
		m.stream, err = client.DeltaAggregatedResources(ctx)
	} else {
		m.stream, err = client.StreamAggregatedResources(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.has {
		m.has[i] = map[string]bool{}
	}
	go m.run()
	t.Cleanup(m.leave)
	return m
}

func (m *mirror) leave() {
	m.cancel()
	<-m.ended
}

// ask is for these names from now on, or for all.
func (m *mirror) ask(t resource.Type, names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.request(t, names)
}

func (m *mirror) request(t resource.Type, names []string) {
	before := m.asked[t]
	m.asked[t] = names
	var err error
	if m.delta {
		request := &discovery.DeltaDiscoveryRequest{TypeUrl: t.URL(), Node: m.node, InitialResourceVersions: m.versions}
		for _, name := range names {
			if !slices.Contains(before, name) {
				request.ResourceNamesSubscribe = append(request.ResourceNamesSubscribe, name)
			}
		}
		for _, name := range before {
			if !slices.Contains(names, name) {
				request.ResourceNamesUnsubscribe = append(request.ResourceNamesUnsubscribe, name)
				delete(m.has[t], name)
			}
		}
		if m.started[t] && len(request.ResourceNamesSubscribe)+len(request.ResourceNamesUnsubscribe) == 0 {
			return
		}
		err = m.stream.SendMsg(request)
	} else {
		err = m.stream.SendMsg(&discovery.DiscoveryRequest{TypeUrl: t.URL(), Node: m.node, ResourceNames: names, ResponseNonce: m.nonces[t]})
		for name := range m.has[t] {
			if all := len(names) == 0 && (t == resource.Cluster || t == resource.Listener); !all && !slices.Contains(names, name) {
				delete(m.has[t], name)
			}
		}
	}
	m.started[t] = true
	m.node = nil
	_ = err // the stream has ended then, which run says
}

func (m *mirror) run() {
	defer close(m.ended)
	for {
		n, err := m.receive()
		m.mu.Lock()
		if err != nil {
			m.err = err
			m.mu.Unlock()
			return
		}
		m.take(n)
		m.mu.Unlock()
	}
}

func (m *mirror) receive() (news, error) {
	n := news{}
	if m.delta {
		var answer discovery.DeltaDiscoveryResponse
		if err := m.stream.RecvMsg(&answer); err != nil {
			return n, err
		}
		n.of, _ = resource.TypeOf(answer.GetTypeUrl())
		n.nonce, n.gone = answer.GetNonce(), answer.GetRemovedResources()
		for _, r := range answer.GetResources() {
			n.names = append(n.names, r.GetName())
		}
	} else {
		var answer discovery.DiscoveryResponse
		if err := m.stream.RecvMsg(&answer); err != nil {
			return n, err
		}
		n.of, _ = resource.TypeOf(answer.GetTypeUrl())
		n.nonce = answer.GetNonce()
		for _, r := range answer.GetResources() {
			n.names = append(n.names, nameOf(r.GetValue()))
		}
	}
	n.at = time.Now()
	return n, nil
}

// nameOf is the first field of every type of resource.
func nameOf(raw []byte) string {
	_, _, n := protowire.ConsumeTag(raw)
	name, _ := protowire.ConsumeString(raw[n:])
	return name
}

func (m *mirror) take(n news) {
	m.seen = append(m.seen, n)
	whole := !m.delta && (n.of == resource.Cluster || n.of == resource.Listener)
	if whole {
		clear(m.has[n.of])
	}
	for _, name := range n.names {
		m.has[n.of][name] = true
	}
	for _, name := range n.gone {
		delete(m.has[n.of], name)
	}
	m.nonces[n.of] = n.nonce
	if m.silent {
		return
	}
	against := ""
	if m.against != nil {
		against = m.against(n)
	}
	m.acknowledge(n, against)
	if !m.follows {
		return
	}
	names := slices.Sorted(maps.Keys(m.has[n.of]))
	switch n.of {
	case resource.Cluster:
		m.request(resource.Endpoint, names)
	case resource.Listener:
		m.request(resource.Route, names)
	}
}

func (m *mirror) knows(t resource.Type) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(m.has[t])), " ")
}

func (m *mirror) history() []news {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen)
}

// end is the error with which the stream has ended.
func (m *mirror) end(t testing.TB) error {
	t.Helper()
	select {
	case <-m.ended:
		return m.err
	case <-time.After(wait.Deadline()):
		t.Fatal("the stream does not end")
		return nil
	}
}

func (m *mirror) acknowledge(n news, against string) {
	detail := status.New(codes.InvalidArgument, against).Proto()
	if against == "" {
		detail = nil
	}
	if m.delta {
		_ = m.stream.SendMsg(&discovery.DeltaDiscoveryRequest{TypeUrl: n.of.URL(), ResponseNonce: n.nonce, ErrorDetail: detail})
		return
	}
	_ = m.stream.SendMsg(&discovery.DiscoveryRequest{
		TypeUrl: n.of.URL(), ResourceNames: m.asked[n.of], ResponseNonce: n.nonce, VersionInfo: "acknowledged", ErrorDetail: detail,
	})
}
