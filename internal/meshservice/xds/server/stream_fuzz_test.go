package server

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// recorded is a stream on which requests come that were written before.
type recorded struct {
	t        *testing.T
	ctx      context.Context
	codec    codec
	requests [][]byte
	// sent are the responses, of any protocol.
	mu   sync.Mutex
	sent []proto.Message
}

func (r *recorded) Context() context.Context     { return r.ctx }
func (r *recorded) SetHeader(metadata.MD) error  { return nil }
func (r *recorded) SendHeader(metadata.MD) error { return nil }
func (r *recorded) SetTrailer(metadata.MD)       {}

func (r *recorded) RecvMsg(into any) error {
	if len(r.requests) == 0 {
		return io.EOF
	}
	next := r.requests[0]
	r.requests = r.requests[1:]
	if err := r.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(next)}, into); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// take decodes a response as a proxy does.
func (r *recorded) take(message any, into proto.Message) error {
	buffers, err := r.codec.Marshal(message)
	if err == nil {
		err = proto.Unmarshal(buffers.Materialize(), into)
	}
	if err != nil {
		r.t.Errorf("a response cannot be read: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, into)
	return err
}

type recordedSotw struct{ *recorded }

func (r recordedSotw) SendMsg(message any) error {
	return r.take(message, &discovery.DiscoveryResponse{})
}

func (r recordedSotw) Send(message *discovery.DiscoveryResponse) error { return r.SendMsg(message) }

func (r recordedSotw) Recv() (*discovery.DiscoveryRequest, error) {
	request := &discovery.DiscoveryRequest{}
	return request, r.RecvMsg(request)
}

type recordedDelta struct{ *recorded }

func (r recordedDelta) SendMsg(message any) error {
	return r.take(message, &discovery.DeltaDiscoveryResponse{})
}

func (r recordedDelta) Send(message *discovery.DeltaDiscoveryResponse) error {
	return r.SendMsg(message)
}

func (r recordedDelta) Recv() (*discovery.DeltaDiscoveryRequest, error) {
	request := &discovery.DeltaDiscoveryRequest{}
	return request, r.RecvMsg(request)
}

// split are the parts of a text, each behind its length in two bytes; what is left is the last.
func split(text []byte) (parts [][]byte) {
	for len(text) > 2 && len(parts) < 100 {
		n := min(int(text[0])<<8|int(text[1]), len(text)-2)
		parts = append(parts, text[2:2+n])
		text = text[2+n:]
	}
	return parts
}

func join(parts ...[]byte) (text []byte) {
	for _, part := range parts {
		text = append(append(text, byte(len(part)>>8), byte(len(part))), part...)
	}
	return text
}

// FuzzStream: whatever a proxy sends, its stream ends when it has sent all, nothing is left of it, and it was sent nothing but what
// it may have, in an order of which the nonces are the count.
func FuzzStream(f *testing.F) {
	sotw, delta := requestsOf(f)
	f.Add(join(sotw...), false)
	f.Add(join(delta...), true)
	for i := range sotw {
		f.Add(join(sotw[i:]...), false)
	}
	for i := range delta {
		f.Add(join(append(delta[i:], delta...)...), true)
	}
	has := map[string]bool{"a": true, "b": true}
	f.Fuzz(func(t *testing.T, text []byte, delta bool) {
		store := NewStoreWithTiming(Timing{})
		store.Set(cart, config(1, "a", "b"))
		server := NewServer(Options{Store: store, Identify: Insecure, Namespaced: true, Limits: Limits{RequestBytes: 1 << 16}})
		r := &recorded{t: t, ctx: t.Context(), codec: newCodec(server.options.Limits.subscriptionBytes()), requests: split(text)}
		var err error
		if delta {
			err = server.DeltaAggregatedResources(recordedDelta{r})
		} else {
			err = server.StreamAggregatedResources(recordedSotw{r})
		}
		if code := status.Code(err); code == codes.Internal || code == codes.Unknown && !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v", err)
		}
		eventually(t, "no stream is left", func() bool { return len(store.connected(cart.Mesh)) == 0 })
		p := store.find(cart)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.subscriptions != 0 || len(p.closedStreams) > 1+extraClosedStreams {
			t.Errorf("left are %d of subscriptions, and %d closed streams", p.subscriptions, len(p.closedStreams))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		asked := namesIn(split(text), delta)
		for i, response := range r.sent {
			url, nonce, names := contentOf(response)
			if _, served := resource.TypeOf(url); !served {
				t.Errorf("response %d is of type %q", i, url)
			}
			if want := len(nonce) > 0; !want {
				t.Errorf("response %d has no nonce", i)
			}
			for _, name := range names {
				if !has[name] && !asked[name] {
					t.Errorf("response %d has %q, which the proxy has not and did not name", i, name)
				}
			}
		}
	})
}

// namesIn are all names in requests.
func namesIn(requests [][]byte, delta bool) map[string]bool {
	all := map[string]bool{}
	for _, text := range requests {
		var names []string
		if delta {
			request := &discovery.DeltaDiscoveryRequest{}
			_ = decodeRequest(text, request, 1<<30)
			names = append(request.GetResourceNamesSubscribe(), request.GetResourceNamesUnsubscribe()...)
			for name := range request.GetInitialResourceVersions() {
				names = append(names, name)
			}
		} else {
			request := &discovery.DiscoveryRequest{}
			_ = decodeRequest(text, request, 1<<30)
			names = request.GetResourceNames()
		}
		for _, name := range names {
			all[name] = true
		}
	}
	return all
}

// contentOf are the type, the nonce and the names of resources in a response.
func contentOf(response proto.Message) (url, nonce string, names []string) {
	switch r := response.(type) {
	case *discovery.DiscoveryResponse:
		for _, body := range r.GetResources() {
			names = append(names, nameOf(body.GetValue()))
		}
		return r.GetTypeUrl(), r.GetNonce(), names
	case *discovery.DeltaDiscoveryResponse:
		for _, one := range r.GetResources() {
			names = append(names, one.GetName())
		}
		return r.GetTypeUrl(), r.GetNonce(), append(names, r.GetRemovedResources()...)
	}
	return "", "", nil
}
