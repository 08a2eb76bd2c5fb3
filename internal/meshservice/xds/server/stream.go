package server

import (
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

var servedMethods = map[string]bool{
	discovery.AggregatedDiscoveryService_StreamAggregatedResources_FullMethodName: true,
	discovery.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName:  true,
}

// sotwStream sends the resources of responses from memory that all streams share.
type sotwStream struct {
	discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	session *session
}

func (s sotwStream) Send(response *discovery.DiscoveryResponse) error {
	return s.session.send(s.SendMsg, response, (*resource.Resource).Encoded)
}

func (s sotwStream) Recv() (*discovery.DiscoveryRequest, error) {
	request, err := s.AggregatedDiscoveryService_StreamAggregatedResourcesServer.Recv()
	s.session.received(err)
	s.session.connection.decoded(len(request.GetResourceNames()))
	return request, err
}

// deltaStream does so for incremental responses.
type deltaStream struct {
	discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	session *session
}

func (s deltaStream) Send(response *discovery.DeltaDiscoveryResponse) error {
	return s.session.send(s.SendMsg, response, (*resource.Resource).Label, (*resource.Resource).Encoded)
}

func (s deltaStream) Recv() (*discovery.DeltaDiscoveryRequest, error) {
	request, err := s.AggregatedDiscoveryService_DeltaAggregatedResourcesServer.Recv()
	s.session.received(err)
	s.session.connection.decoded(len(request.GetResourceNamesSubscribe()) + len(request.GetResourceNamesUnsubscribe()) + 2*len(request.GetInitialResourceVersions()))
	return request, err
}

// send sends a response with the resources of which setNonce was just told. A proxy that does not read within the timeout
// loses its connection: a stream that ends keeps its memory until the proxy reads.
func (s *session) send(to func(any) error, response proto.Message, parts ...func(*resource.Resource) mem.Buffer) error {
	resources := s.sending
	s.sending = nil
	message, err := encodeResponse(response, resources, parts...)
	if err != nil {
		return err
	}
	s.sendTimer.Reset(s.sendTimeout)
	defer s.sendTimer.Stop()
	return to(message)
}

func (s *session) onSendTimeout() {
	s.end(rejectf(causeSlowReader, codes.DeadlineExceeded, "proxy %s has not read a response within %s: reconnect", s.node, s.sendTimeout))
	if s.connection != nil {
		_ = s.connection.Close()
	}
}

// received records a request that is too large, or cannot be decoded, with which gRPC ends the stream. Other errors are those
// of a stream that has ended.
func (s *session) received(err error) {
	switch status.Code(err) {
	case codes.ResourceExhausted:
		s.reject("", rejectf(causeRequestSize, codes.ResourceExhausted, "%s", status.Convert(err).Message()))
	case codes.Internal:
		s.reject("", rejectf(causeRequest, codes.InvalidArgument, "%s", status.Convert(err).Message()))
	}
}

// encodedResponse is a response on the wire.
type encodedResponse struct{ buffers mem.BufferSlice }

// encodeResponse appends resources, in these parts each, to a response without resources. Only the response is copied.
func encodeResponse(response proto.Message, resources list, parts ...func(*resource.Resource) mem.Buffer) (*encodedResponse, error) {
	rest, err := proto.Marshal(response)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "encode a response: %v", err)
	}
	buffers := make(mem.BufferSlice, 1, 1+len(parts)*len(resources))
	buffers[0] = mem.SliceBuffer(rest)
	for _, r := range resources {
		for _, part := range parts {
			buffers = append(buffers, part(r))
		}
	}
	return &encodedResponse{buffers}, nil
}

// codec is that of protocol buffers, of encoded responses, and of requests that are not trusted.
type codec struct {
	encoding.CodecV2
	// maxNames bounds the names in a request.
	maxNames int
}

func newCodec(maxNames int) codec { return codec{encoding.GetCodecV2(protocodec.Name), maxNames} }

func (c codec) Marshal(message any) (mem.BufferSlice, error) {
	if response, encoded := message.(*encodedResponse); encoded {
		return response.buffers, nil
	}
	return c.CodecV2.Marshal(message)
}
