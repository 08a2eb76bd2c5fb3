package server

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// wire is a message as it is sent.
func wire(t testing.TB, message proto.Message) []byte {
	t.Helper()
	text, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// requestsOf are such as proxies send them, and some as none does.
func requestsOf(t testing.TB) (sotw, delta [][]byte) {
	node := &corev3.Node{Id: cart.String(), Cluster: "cart", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewStringValue("b")}},
		Extensions: []*corev3.Extension{{Name: "e"}}, UserAgentName: "envoy"}
	refusal := status.New(codes.InvalidArgument, "no such \x1b thing").Proto()
	for _, of := range resource.Types() {
		sotw = append(sotw, wire(t, &discovery.DiscoveryRequest{Node: node, TypeUrl: of.URL()}),
			wire(t, &discovery.DiscoveryRequest{TypeUrl: of.URL(), ResourceNames: []string{"a", "b", "*"}, VersionInfo: "1", ResponseNonce: "1"}),
			wire(t, &discovery.DiscoveryRequest{TypeUrl: of.URL(), ResponseNonce: "1", ErrorDetail: refusal}))
		delta = append(delta, wire(t, &discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: of.URL(), InitialResourceVersions: map[string]string{"a": "1", "gone": "2"}}),
			wire(t, &discovery.DeltaDiscoveryRequest{TypeUrl: of.URL(), ResourceNamesSubscribe: []string{"a", "b"}, ResourceNamesUnsubscribe: []string{"c", "*"}}),
			wire(t, &discovery.DeltaDiscoveryRequest{TypeUrl: of.URL(), ResponseNonce: "1", ErrorDetail: refusal}))
	}
	sotw = append(sotw, wire(t, &discovery.DiscoveryRequest{Node: node, TypeUrl: "type.googleapis.com/other", ResourceLocators: []*discovery.ResourceLocator{{Name: "x"}}}), []byte("\x12\x01"), nil)
	return sotw, delta
}

// FuzzDecodeRequest: what is decoded of a request is the same as when it is decoded in full, and stays so when it is written again.
// Nothing is accepted that the full decoder does not accept, but for what is skipped.
func FuzzDecodeRequest(f *testing.F) {
	sotw, delta := requestsOf(f)
	for _, text := range sotw {
		f.Add(text, false)
	}
	for _, text := range delta {
		f.Add(text, true)
	}
	const room = 1 << 16
	f.Fuzz(func(t *testing.T, text []byte, delta bool) {
		made := func() proto.Message {
			if delta {
				return &discovery.DeltaDiscoveryRequest{}
			}
			return &discovery.DiscoveryRequest{}
		}
		got, whole, again := made(), made(), made()
		err := decodeRequest(text, got, room)
		wholeErr := proto.Unmarshal(text, whole)
		want, names, longest := usedOf(whole)
		cost := 0
		for _, name := range names {
			cost += len(name) + nameCost
		}
		switch {
		case err != nil && wholeErr == nil && cost <= room && longest <= maxNameBytes && !hasRepeatedVersions(text, whole):
			t.Fatalf("%q is refused: %v", text, err)
		case err != nil:
			return
		}
		_, mine, _ := usedOf(got)
		if d, delta := got.(*discovery.DeltaDiscoveryRequest); delta {
			mine = mine[len(d.GetInitialResourceVersions()):] // a version counts with its name
		}
		if len(mine)*nameCost > room {
			t.Errorf("%d names are decoded", len(mine))
		}
		if wholeErr == nil {
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%q (-whole +got):\n%s", text, diff)
			}
		}
		if err := decodeRequest(wire(t, got), again, room); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again, protocmp.Transform()); diff != "" {
			t.Errorf("written again (-first +second):\n%s", diff)
		}
	})
}

// hasRepeatedVersions says that an entry of the map may be there more often than once, each of which counts.
func hasRepeatedVersions(text []byte, whole proto.Message) bool {
	d, delta := whole.(*discovery.DeltaDiscoveryRequest)
	return delta && len(d.GetInitialResourceVersions()) > 0 && len(text) > 200
}

// usedOf is what is used of a request, the names and versions in it, and the length of the longest of what is bounded.
func usedOf(whole proto.Message) (proto.Message, []string, int) {
	var names, bounded []string
	node := func(n *corev3.Node) *corev3.Node {
		if n == nil {
			return nil
		}
		bounded = append(bounded, n.GetId())
		return &corev3.Node{Id: n.GetId()}
	}
	var used proto.Message
	switch r := whole.(type) {
	case *discovery.DiscoveryRequest:
		names, bounded = r.GetResourceNames(), []string{r.GetVersionInfo(), r.GetTypeUrl(), r.GetResponseNonce()}
		short := &discovery.DiscoveryRequest{Node: node(r.GetNode()), VersionInfo: r.GetVersionInfo(), TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetResponseNonce(), ResourceNames: names}
		if e := r.GetErrorDetail(); e != nil {
			short.ErrorDetail = status.New(codes.Unknown, strings.ToValidUTF8(e.GetMessage()[:min(len(e.GetMessage()), maxErrorBytes)], "")).Proto()
		}
		used = short
	case *discovery.DeltaDiscoveryRequest:
		names, bounded = slices.Concat(r.GetResourceNamesSubscribe(), r.GetResourceNamesUnsubscribe(), slices.Collect(maps.Keys(r.GetInitialResourceVersions())), slices.Collect(maps.Values(r.GetInitialResourceVersions()))), []string{r.GetTypeUrl(), r.GetResponseNonce()}
		short := &discovery.DeltaDiscoveryRequest{Node: node(r.GetNode()), TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetResponseNonce(), ResourceNamesSubscribe: r.GetResourceNamesSubscribe(),
			ResourceNamesUnsubscribe: r.GetResourceNamesUnsubscribe(), InitialResourceVersions: r.GetInitialResourceVersions()}
		if e := r.GetErrorDetail(); e != nil {
			short.ErrorDetail = status.New(codes.Unknown, strings.ToValidUTF8(e.GetMessage()[:min(len(e.GetMessage()), maxErrorBytes)], "")).Proto()
		}
		used = short
	}
	longest := 0
	for _, text := range slices.Concat(names, bounded) {
		longest = max(longest, len(text))
	}
	return used, names, longest
}

// A request of a client that nobody has identified takes no more memory than a few times its size, whatever is in it.
func TestDecodedRequestIsSmall(t *testing.T) {
	const size = 4 << 20
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	many := func(one []byte) []byte { return bytes.Repeat(one, size/len(one)) }
	long := many([]byte("a"))
	for name, text := range map[string][]byte{
		"names":                  many(field(3, []byte("a"))),
		"a long name":            field(3, long),
		"locators":               many(field(7, nil)),
		"a long id of a node":    field(2, field(1, long)),
		"extensions of a node":   field(2, many(field(9, nil))),
		"addresses of a node":    field(2, many(field(11, nil))),
		"dynamic parameters":     field(2, many(field(12, field(1, []byte("a"))))),
		"metadata of a node":     field(2, field(3, many(field(1, field(2, nil))))),
		"lists in the metadata":  field(2, field(3, field(1, field(2, field(6, many(field(1, nil))))))),
		"many nodes":             many(field(2, nil)),
		"details of an error":    field(6, many(field(3, nil))),
		"a long error of a NACK": field(6, field(2, long)),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_ = decodeRequest(text, &discovery.DiscoveryRequest{}, DefaultLimits().subscriptionBytes())
			runtime.ReadMemStats(&after)
			taken := after.TotalAlloc - before.TotalAlloc
			if taken > size {
				t.Errorf("%d bytes take %d", len(text), taken)
			}
		})
	}
}

// A proxy that is identified can have no more names kept than there is room for, by however many streams, types and requests.
func TestManyNames(t *testing.T) {
	long := func(stream, i int) string { return fmt.Sprintf("%d-%d-%s", stream, i, strings.Repeat("x", 200)) }
	for name, ask := range map[string]func(m *mirror, stream, i int){
		"names of a type": func(m *mirror, stream, i int) {
			m.ask(resource.Endpoint, append(slices.Clone(m.asked[resource.Endpoint]), long(stream, i))...)
		},
		"types that nobody serves": func(m *mirror, _, i int) { m.send(fmt.Sprint("type.googleapis.com/none.", i), long(0, i)) },
	} {
		t.Run(name, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, delta bool) {
				store := NewStoreWithTiming(brisk())
				store.Set(cart, config(1, "a"))
				address := serve(t, Options{Store: store, Limits: Limits{RequestBytes: 20_000}}, nil)
				connection := dial(t, address, nil)
				var first *mirror
				for stream := range 4 {
					m := connect(t, connection, cart.String(), delta)
					first = m
					m.ask(resource.Listener)
					eventually(t, "its listener", func() bool { return m.knows(resource.Listener) == "a" || isClosed(m.ended) })
					for i := 0; i < 40 && !isClosed(m.ended); i++ {
						ask(m, stream, i)
					}
				}
				err := first.end(t)
				if code := status.Code(err); code != codes.ResourceExhausted && code != codes.InvalidArgument {
					t.Errorf("the stream ended with %v", err)
				}
				_ = connection.Close()
				eventually(t, "all are gone", func() bool { return len(store.connected(cart.Mesh)) == 0 })
				p := store.find(cart)
				eventually(t, "nothing is counted", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.subscriptions == 0 })
				late := proxyOf(t, address, delta)
				eventually(t, "a proxy that behaves has all", func() bool { return late.knows(resource.Route) == "a" })
			})
		})
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// send asks for a type that nobody knows.
func (m *mirror) send(url, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.delta {
		_ = m.stream.SendMsg(&discovery.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: []string{name}})
		return
	}
	_ = m.stream.SendMsg(&discovery.DiscoveryRequest{TypeUrl: url, ResourceNames: []string{name}})
}

// What is compressed is refused: a few kilobytes would be as many megabytes.
func TestCompressedRequest(t *testing.T) {
	store := NewStoreWithTiming(brisk())
	store.Set(cart, config(1, "a"))
	connection := dial(t, serve(t, Options{Store: store}, nil), nil)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(t.Context(), grpc.UseCompressor(gzip.Name))
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&discovery.DiscoveryRequest{Node: &corev3.Node{Id: cart.String()}, TypeUrl: resource.Listener.URL()})
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}
