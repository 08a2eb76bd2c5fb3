package server

import (
	"context"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// OnStreamOpen does nothing: the node comes with the first request.
func (s *session) OnStreamOpen(context.Context, int64, string) error { return nil }

// OnDeltaStreamOpen does nothing: the node comes with the first request.
func (s *session) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }

// OnStreamRequest authenticates the stream.
func (s *session) OnStreamRequest(_ int64, request *discovery.DiscoveryRequest) error {
	return s.authenticate(request.GetNode().GetId())
}

// OnStreamDeltaRequest authenticates the stream.
func (s *session) OnStreamDeltaRequest(_ int64, request *discovery.DeltaDiscoveryRequest) error {
	return s.authenticate(request.GetNode().GetId())
}

// OnStreamResponse records the nonce of a response.
func (s *session) OnStreamResponse(_ context.Context, _ int64, _ *discovery.DiscoveryRequest, answer *discovery.DiscoveryResponse) {
	s.setNonce(answer.GetTypeUrl(), answer.GetNonce())
}

// OnStreamDeltaResponse records the nonce of a response.
func (s *session) OnStreamDeltaResponse(_ int64, _ *discovery.DeltaDiscoveryRequest, answer *discovery.DeltaDiscoveryResponse) {
	s.setNonce(answer.GetTypeUrl(), answer.GetNonce())
}

// OnStreamClosed removes the session.
func (s *session) OnStreamClosed(int64, *core.Node) { s.close() }

// OnDeltaStreamClosed removes the session.
func (s *session) OnDeltaStreamClosed(int64, *core.Node) { s.close() }

func (s *session) setNonce(url, nonce string) {
	t, _ := resource.TypeOf(url)
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	s.state.types[t].setNonce(nonce)
}

func (s *session) close() {
	if s.proxy != nil {
		s.store.removeSession(s)
	}
}
