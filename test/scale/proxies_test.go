package scale_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// lightProxy acknowledges all that it is given, and keeps nothing but counts and names: many of them share the machine with the
// operator that is measured.
type lightProxy struct {
	id     model.ProxyID
	stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient

	mu                  sync.Mutex
	listeners, clusters tally
	// last is when it acknowledged something that it uses. It loses what it uses no more some seconds later, by intention.
	last  time.Time
	ended error
}

// tally is how many there are for tags and for MeshServices.
type tally struct{ tags, services int }

// perConnection is how many proxies share one: connections are not what is measured.
const perConnection = 50

func connectAll(b *testing.B, address string, ids []model.ProxyID) []*lightProxy {
	b.Helper()
	return connectWith(b, address, ids, perConnection, func(model.ProxyID) credentials.TransportCredentials { return insecure.NewCredentials() })
}

// connectEach connects each proxy over TLS and a connection of its own, as in life.
func connectEach(b *testing.B, address string, ids []model.ProxyID, files certificates) []*lightProxy {
	b.Helper()
	return connectWith(b, address, ids, 1, func(id model.ProxyID) credentials.TransportCredentials { return files.of(b, id) })
}

func connectWith(b *testing.B, address string, ids []model.ProxyID, perConnection int, transport func(model.ProxyID) credentials.TransportCredentials) []*lightProxy {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	var all []*lightProxy
	var connection *grpc.ClientConn
	for i, id := range ids {
		if i%perConnection == 0 {
			var err error
			// A client has small buffers too: thousands of them share the machine with the operator.
			if connection, err = grpc.NewClient(address, grpc.WithTransportCredentials(transport(id)), grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10)); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = connection.Close() })
		}
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(ctx)
		if err != nil {
			b.Fatalf("connect %s: %v", id, err)
		}
		p := &lightProxy{id: id, stream: stream}
		all = append(all, p)
		go p.listen()
	}
	return all
}

func (p *lightProxy) listen() {
	p.ask(resource.Cluster, nil, nil)
	p.ask(resource.Listener, nil, nil)
	known := map[string]bool{}
	latest := map[resource.Type]*discoveryv3.DiscoveryResponse{}
	for {
		answer, err := p.stream.Recv()
		if err != nil {
			p.mu.Lock()
			p.ended = err
			p.mu.Unlock()
			return
		}
		t, _ := resource.TypeOf(answer.TypeUrl)
		latest[t] = answer
		its, before := names(answer), len(known)
		if t == resource.Cluster {
			for _, name := range its {
				known[name] = true
			}
		}
		more := len(known) > before
		if t == resource.Cluster || t == resource.Listener {
			p.ask(t, answer, nil)
		} else {
			p.ask(t, answer, slices.Sorted(maps.Keys(known)))
		}
		if more {
			// What leads to a cluster has its name.
			for _, follows := range []resource.Type{resource.Endpoint, resource.Route} {
				p.ask(follows, latest[follows], slices.Sorted(maps.Keys(known)))
			}
		}
		p.note(t, its, more)
	}
}

func (p *lightProxy) note(t resource.Type, its []string, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch t {
	case resource.Listener:
		p.listeners = count(its, "outbound:240.", "outbound:241.")
	case resource.Cluster:
		p.clusters = count(its, "", "_msvc_")
		p.clusters.tags -= p.clusters.services
	}
	if more || t == resource.Listener || t == resource.Route {
		p.last = time.Now()
	}
}

func count(names []string, tags, services string) tally {
	var n tally
	for _, name := range names {
		if strings.Contains(name, tags) {
			n.tags++
		}
		if strings.Contains(name, services) {
			n.services++
		}
	}
	return n
}

func (p *lightProxy) ask(t resource.Type, last *discoveryv3.DiscoveryResponse, wanted []string) {
	// What is wrong with the stream is told to whoever reads from it.
	_ = p.stream.Send(&discoveryv3.DiscoveryRequest{
		Node: &corev3.Node{Id: p.id.String()}, TypeUrl: t.URL(), ResourceNames: wanted,
		VersionInfo: last.GetVersionInfo(), ResponseNonce: last.GetNonce(),
	})
}

// names are those of the resources in an answer, the first field of each kind that has one.
func names(answer *discoveryv3.DiscoveryResponse) []string {
	var all []string
	for _, r := range answer.Resources {
		if number, kind, n := protowire.ConsumeTag(r.Value); n > 0 && number == 1 && kind == protowire.BytesType {
			name, _ := protowire.ConsumeBytes(r.Value[n:])
			all = append(all, string(name))
		}
	}
	return all
}
