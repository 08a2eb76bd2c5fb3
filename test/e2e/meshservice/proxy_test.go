package meshservice_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// proxy asks for everything that it is given, as Envoy does, and acknowledges it, unless it is deaf.
type proxy struct {
	id     model.ProxyID
	stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient

	mu   sync.Mutex
	deaf bool
	// against is what it has against everything that it is given, if anything.
	against string
	got     map[resource.Type]map[string][]byte
	// asked are the names of the endpoints and routes that it asks for.
	asked map[resource.Type][]string
	// last are the latest answers, the ones that it has not acknowledged among them.
	last  map[resource.Type]*discoveryv3.DiscoveryResponse
	ended error
	// lost are the clusters that it was given once, and no longer.
	lost []string
}

// connect starts a proxy that goes with the test.
func (s *stage) connect(t testing.TB, id model.ProxyID) *proxy {
	t.Helper()
	p := &proxy{id: id}
	p.dialAt(t, s.servesAt(t), anyError, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return p
}

// anyError has a proxy come again that is served in the end, whatever a busy server answers at first.
func anyError(err error) bool { return err != nil }

// isNotDecided has a client come again that is neither served nor refused: a pod may be quicker than its Dataplane, a client than an
// operator that has just started, and the API server may be too busy to review a token.
func isNotDecided(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "does not exist in mesh") || strings.Contains(err.Error(), "cannot be reviewed"))
}

func (p *proxy) dialAt(t testing.TB, address string, comesAgain func(error) bool, options ...grpc.DialOption) {
	t.Helper()
	conn, err := grpc.NewClient(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		cancel()
		_ = conn.Close()
	})
	client := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	wait.Until(t, func(context.Context) error {
		if err := p.open(ctx, client); comesAgain(err) {
			return err
		}
		return nil
	})
}

// open begins a stream, and waits until it is answered or refused.
func (p *proxy) open(ctx context.Context, client discoveryv3.AggregatedDiscoveryServiceClient) error {
	p.mu.Lock()
	p.got, p.asked = map[resource.Type]map[string][]byte{}, map[resource.Type][]string{}
	p.last, p.ended = map[resource.Type]*discoveryv3.DiscoveryResponse{}, nil
	p.stream, p.ended = client.StreamAggregatedResources(ctx)
	p.mu.Unlock()
	if p.ended != nil {
		return p.ended
	}
	p.ask(resource.Cluster)
	p.ask(resource.Listener)
	answer, err := p.stream.Recv()
	if err != nil {
		p.ended = err
		return err
	}
	p.take(answer)
	go p.listen()
	return nil
}

func (p *proxy) listen() {
	for {
		answer, err := p.stream.Recv()
		if err != nil {
			p.mu.Lock()
			p.ended = err
			p.mu.Unlock()
			return
		}
		p.take(answer)
	}
}

func (p *proxy) take(answer *discoveryv3.DiscoveryResponse) {
	t, known := resource.TypeOf(answer.TypeUrl)
	if !known {
		return
	}
	p.mu.Lock()
	p.last[t] = answer
	before := p.got[t]
	if p.got[t] == nil || t == resource.Cluster || t == resource.Listener {
		p.got[t] = map[string][]byte{} // those two are told as a whole
	}
	var names []string
	for _, body := range answer.Resources {
		name, routes := read(body)
		p.got[t][name] = body.Value
		names = append(names, routes...)
		if t == resource.Cluster {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, kept := p.got[t][name]; t == resource.Cluster && !kept {
			p.lost = append(p.lost, name)
		}
	}
	deaf, against := p.deaf, p.against
	p.mu.Unlock()
	if deaf {
		return
	}
	p.ask(t)
	if against != "" {
		return
	}
	switch t {
	case resource.Cluster:
		p.askFor(resource.Endpoint, names)
	case resource.Listener:
		p.askFor(resource.Route, names)
	}
}

// read is the name of a resource, and those of the routes that it names.
func read(body *anypb.Any) (string, []string) {
	m, err := body.UnmarshalNew()
	if err != nil {
		return err.Error(), nil
	}
	if l, is := m.(*listenerv3.Listener); is {
		return l.Name, routes(l)
	}
	switch named := m.(type) {
	case interface{ GetClusterName() string }:
		return named.GetClusterName(), nil
	case interface{ GetName() string }:
		return named.GetName(), nil
	}
	return fmt.Sprintf("%T", m), nil
}

func routes(l *listenerv3.Listener) []string {
	filters := []*anypb.Any{l.GetApiListener().GetApiListener()}
	for _, chain := range l.FilterChains {
		for _, f := range chain.Filters {
			filters = append(filters, f.GetTypedConfig())
		}
	}
	var names []string
	for _, f := range filters {
		var manager hcmv3.HttpConnectionManager
		if f != nil && f.UnmarshalTo(&manager) == nil && manager.GetRds() != nil {
			names = append(names, manager.GetRds().RouteConfigName)
		}
	}
	return names
}

func (p *proxy) askFor(t resource.Type, names []string) {
	slices.Sort(names)
	names = slices.Compact(names)
	p.mu.Lock()
	same := slices.Equal(p.asked[t], names)
	p.asked[t] = names
	for name := range p.got[t] {
		if !slices.Contains(names, name) {
			delete(p.got[t], name)
		}
	}
	p.mu.Unlock()
	if !same && len(names) > 0 {
		p.ask(t)
	}
}

// ask sends a request, which acknowledges what came last, or refuses it.
func (p *proxy) ask(t resource.Type) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.last[t]
	request := &discoveryv3.DiscoveryRequest{
		Node: &corev3.Node{Id: p.id.String()}, TypeUrl: t.URL(), ResourceNames: p.asked[t],
		VersionInfo: last.GetVersionInfo(), ResponseNonce: last.GetNonce(),
	}
	if p.against != "" {
		request.ErrorDetail = status.New(codes.InvalidArgument, p.against).Proto()
	}
	// What is wrong with the stream is told to whoever reads from it.
	_ = p.stream.Send(request)
}

// refuse has a proxy refuse all that it is given from now on.
func (p *proxy) refuse(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.against = why
}

// hear has a proxy acknowledge from now on, or not, and what it owes.
func (p *proxy) hear(does bool) {
	p.mu.Lock()
	p.deaf, p.against = !does, ""
	owed := slices.Collect(maps.Values(p.last))
	p.mu.Unlock()
	if !does {
		return
	}
	for _, answer := range owed {
		p.take(answer)
	}
}

// config is all that the proxy has, by type and name.
func (p *proxy) config() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]string{}
	for t, resources := range p.got {
		kind := t.URL()[strings.LastIndexByte(t.URL(), '.')+1:]
		for name, body := range resources {
			all[kind+" "+name] = string(body)
		}
	}
	return all
}

// names are those of the resources of a type, sorted.
func (p *proxy) names(t resource.Type) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.got[t]))
}

// decode reads a resource that the proxy has, and says whether it has it.
func (p *proxy) decode(t resource.Type, name string, into proto.Message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, found := p.got[t][name]
	return found && proto.Unmarshal(body, into) == nil
}

// hasAll is an error while endpoints or routes that the proxy asks for have not come.
func (p *proxy) hasAll() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t, names := range p.asked {
		for _, name := range names {
			if _, has := p.got[t][name]; !has {
				return fmt.Errorf("%s has asked for %s of type %s, which has not come", p.id, name, t.URL())
			}
		}
	}
	return nil
}

// lostClusters are those that the proxy was given once, and no longer.
func (p *proxy) lostClusters() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lost)
}

// end is why the stream ended, nil while it has not.
func (p *proxy) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// ledTo says whether a listener leads to a cluster, and a route where the listener asks for one: they come after it.
func (p *proxy) ledTo(cluster string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, listener := range p.got[resource.Listener] {
		if bytes.Contains(listener, []byte(cluster)) {
			_, routed := p.got[resource.Route][cluster]
			return routed || !bytes.Contains(listener, []byte("HttpConnectionManager"))
		}
	}
	return false
}

// reaches waits until the proxy has the clusters of these and none of those, with endpoints for the ones that it has.
func (p *proxy) reaches(t testing.TB, these, those []string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		if err := p.end(); err != nil {
			return err
		}
		clusters, endpoints := p.names(resource.Cluster), p.names(resource.Endpoint)
		for _, name := range these {
			if !slices.Contains(clusters, name) || !slices.Contains(endpoints, name) {
				return fmt.Errorf("%s lacks %s among %q, with endpoints of %q", p.id, name, clusters, endpoints)
			}
			if !p.ledTo(name) {
				return fmt.Errorf("%s has %s, and nothing leads there yet", p.id, name)
			}
		}
		for _, name := range those {
			if slices.Contains(clusters, name) {
				return fmt.Errorf("%s has %s among %q", p.id, name, clusters)
			}
		}
		return nil
	})
}
