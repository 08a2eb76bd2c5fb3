package callers

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Envoy is a model of an Envoy that takes the state of the world: it keeps what it has when its stream breaks, reconnects with
// the versions and names of that, and checks after every response that each of its listeners leads to clusters that it has. A
// cluster or listener that is new or changed is warming until its endpoints or routes have come; the old one is used meanwhile.
type Envoy struct {
	node    string
	connect *grpc.ClientConn
	// order is that of the first requests of a further stream.
	order func([]resource.Type)
	stop  context.CancelFunc
	ended chan struct{}

	mu        sync.Mutex
	breaks    context.CancelFunc
	streams   int
	versions  [4]string
	asked     [4]bool
	names     [4][]string
	nonces    [4]string
	clusters  versioned[struct{}]
	listeners versioned[destinations]
	routes    map[string][]string
	broken    []string
	history   []string
}

// versioned are resources that are used, and those that replace them once they are warm.
type versioned[T any] struct{ active, warming map[string]parsed[T] }

type parsed[T any] struct {
	body  []byte
	value T
}

// destinations are where a listener leads: by routes, or to clusters.
type destinations struct {
	routes   string
	clusters []string
}

// StartEnvoy connects until Stop, and again whenever the stream ends.
func StartEnvoy(connection *grpc.ClientConn, node string, order func([]resource.Type)) *Envoy {
	ctx, stop := context.WithCancel(context.Background())
	e := &Envoy{
		node: node, connect: connection, order: order, stop: stop, ended: make(chan struct{}), routes: map[string][]string{},
		clusters:  versioned[struct{}]{map[string]parsed[struct{}]{}, map[string]parsed[struct{}]{}},
		listeners: versioned[destinations]{map[string]parsed[destinations]{}, map[string]parsed[destinations]{}},
	}
	go func() {
		defer close(e.ended)
		for ctx.Err() == nil {
			e.run(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return e
}

// Stop ends it, and returns where a listener has led to a cluster that was not there.
func (e *Envoy) Stop() []string {
	e.stop()
	<-e.ended
	return e.Broken()
}

// Broken is where a listener has led to a cluster that was not there so far.
func (e *Envoy) Broken() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.broken)
}

// Break ends the stream.
func (e *Envoy) Break() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.breaks != nil {
		e.breaks()
	}
}

// Streams is how many streams have been answered.
func (e *Envoy) Streams() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.streams
}

// History are the responses so far, one a line.
func (e *Envoy) History() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.history, "\n")
}

// Leads are the clusters to which a listener leads, and whether it has it.
func (e *Envoy) Leads(listener string) ([]string, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l, found := e.listeners.active[listener]
	return e.clustersOf(l.value), found
}

// Clusters are the names of those that it uses.
func (e *Envoy) Clusters() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.clusters.active))
}

func (e *Envoy) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(e.connect).StreamAggregatedResources(ctx)
	if err != nil {
		return
	}
	e.mu.Lock()
	e.breaks, e.nonces, e.asked = cancel, [4]string{}, [4]bool{}
	first := []resource.Type{resource.Cluster}
	if e.versions[resource.Listener] != "" {
		first = resource.Types()
		e.order(first)
	}
	for _, t := range first {
		if refersToAll(t) || len(e.names[t]) > 0 {
			e.request(stream, t)
		}
	}
	e.mu.Unlock()
	for answered := false; ; answered = true {
		response, err := stream.Recv()
		if err != nil {
			return
		}
		e.mu.Lock()
		if !answered {
			e.streams++
		}
		e.take(stream, response)
		e.mu.Unlock()
	}
}

// refersToAll says of which types it asks for everything.
func refersToAll(t resource.Type) bool { return t == resource.Cluster || t == resource.Listener }

type requests interface {
	Send(*discovery.DiscoveryRequest) error
}

func (e *Envoy) request(to requests, t resource.Type) {
	e.asked[t] = true
	// What is wrong with the stream is told to whoever reads from it.
	_ = to.Send(&discovery.DiscoveryRequest{
		Node: &corev3.Node{Id: e.node}, TypeUrl: t.URL(), VersionInfo: e.versions[t], ResponseNonce: e.nonces[t], ResourceNames: e.names[t],
	})
}

func (e *Envoy) take(stream requests, response *discovery.DiscoveryResponse) {
	t, _ := resource.TypeOf(response.GetTypeUrl())
	bodies := map[string]*anypb.Any{}
	for _, body := range response.GetResources() {
		m, err := body.UnmarshalNew()
		if err != nil {
			e.broken = append(e.broken, err.Error())
			continue
		}
		switch named := m.(type) {
		case interface{ GetClusterName() string }:
			bodies[named.GetClusterName()] = body
		case interface{ GetName() string }:
			bodies[named.GetName()] = body
		}
	}
	e.history = append(e.history, fmt.Sprintf("stream %d: %s %q", e.streams, t.URL()[strings.LastIndexByte(t.URL(), '.')+1:], slices.Sorted(maps.Keys(bodies))))
	switch t {
	case resource.Cluster:
		e.clusters.replace(bodies, func([]byte) struct{} { return struct{}{} })
	case resource.Endpoint:
		for name := range bodies {
			e.clusters.warmed(name)
		}
	case resource.Listener:
		e.listeners.replace(bodies, leadsTo)
	case resource.Route:
		for name, body := range bodies {
			e.routes[name] = routedTo(body.GetValue())
		}
	}
	for name, l := range e.listeners.warming {
		if _, routed := e.routes[l.value.routes]; routed || l.value.routes == "" {
			e.listeners.warmed(name)
		}
	}
	e.check()
	e.versions[t], e.nonces[t] = response.GetVersionInfo(), response.GetNonce()
	e.request(stream, t)
	e.follow(stream)
}

// follow subscribes to the endpoints of clusters and to the routes of listeners, and at first to listeners once all clusters
// are warm.
func (e *Envoy) follow(stream requests) {
	routes := map[string]bool{}
	for _, l := range slices.Concat(slices.Collect(maps.Values(e.listeners.active)), slices.Collect(maps.Values(e.listeners.warming))) {
		if l.value.routes != "" {
			routes[l.value.routes] = true
		}
	}
	maps.DeleteFunc(e.routes, func(name string, _ []string) bool { return !routes[name] })
	for t, names := range map[resource.Type][]string{resource.Endpoint: e.clusters.names(), resource.Route: slices.Sorted(maps.Keys(routes))} {
		if !slices.Equal(e.names[t], names) || !e.asked[t] && len(names) > 0 {
			e.names[t] = names
			e.request(stream, t)
		}
	}
	if !e.asked[resource.Listener] && e.versions[resource.Listener] == "" && len(e.clusters.warming) == 0 {
		e.request(stream, resource.Listener)
	}
}

func (e *Envoy) clustersOf(to destinations) []string {
	if to.routes != "" {
		return e.routes[to.routes]
	}
	return to.clusters
}

func (e *Envoy) check() {
	for name, l := range e.listeners.active {
		for _, cluster := range e.clustersOf(l.value) {
			if _, there := e.clusters.active[cluster]; !there && cluster != build.NoCluster {
				e.broken = append(e.broken, fmt.Sprintf("%s, listener %s leads to cluster %s, which is not there", e.history[len(e.history)-1], name, cluster))
			}
		}
	}
}

// replace takes the resources of a response, which are all that there are.
func (v *versioned[T]) replace(bodies map[string]*anypb.Any, parse func([]byte) T) {
	for _, all := range []map[string]parsed[T]{v.active, v.warming} {
		maps.DeleteFunc(all, func(name string, _ parsed[T]) bool { return bodies[name] == nil })
	}
	for name, body := range bodies {
		if before, there := v.active[name]; there && bytes.Equal(before.body, body.GetValue()) {
			delete(v.warming, name)
			continue
		}
		if before, there := v.warming[name]; !there || !bytes.Equal(before.body, body.GetValue()) {
			v.warming[name] = parsed[T]{body.GetValue(), parse(body.GetValue())}
		}
	}
}

func (v *versioned[T]) warmed(name string) {
	if next, warming := v.warming[name]; warming {
		v.active[name] = next
		delete(v.warming, name)
	}
}

func (v *versioned[T]) names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(v.active)), maps.Keys(v.warming))
	slices.Sort(names)
	return slices.Compact(names)
}

// leadsTo reads a listener.
func leadsTo(raw []byte) destinations {
	var listener listenerv3.Listener
	if proto.Unmarshal(raw, &listener) != nil {
		return destinations{}
	}
	filters := []*anypb.Any{listener.GetApiListener().GetApiListener()}
	for _, chain := range listener.GetFilterChains() {
		for _, f := range chain.GetFilters() {
			filters = append(filters, f.GetTypedConfig())
		}
	}
	var to destinations
	for _, f := range filters {
		var manager hcmv3.HttpConnectionManager
		var tcp tcpv3.TcpProxy
		switch {
		case f.UnmarshalTo(&manager) == nil:
			to.routes = manager.GetRds().GetRouteConfigName()
		case f.UnmarshalTo(&tcp) == nil:
			if cluster := tcp.GetCluster(); cluster != "" {
				to.clusters = append(to.clusters, cluster)
			}
			for _, share := range tcp.GetWeightedClusters().GetClusters() {
				to.clusters = append(to.clusters, share.GetName())
			}
		}
	}
	return to
}

// routedTo are the clusters of a route configuration.
func routedTo(raw []byte) []string {
	var routes routev3.RouteConfiguration
	if proto.Unmarshal(raw, &routes) != nil {
		return nil
	}
	var clusters []string
	for _, host := range routes.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			if cluster := route.GetRoute().GetCluster(); cluster != "" {
				clusters = append(clusters, cluster)
			}
			for _, share := range route.GetRoute().GetWeightedClusters().GetClusters() {
				clusters = append(clusters, share.GetName())
			}
		}
	}
	return clusters
}
