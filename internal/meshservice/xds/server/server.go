package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	xds "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Options of a server.
type Options struct {
	Store    *Store
	Identify Identifier
	// Precheck, if not nil, rejects what is known to be wrong without a request to anybody, and before the Dataplane exists.
	Precheck Identifier
	Limits   Limits
	// Namespaced says that the ids of nodes end in a namespace, as on Kubernetes.
	Namespaced bool
	Log        logr.Logger

	// FirstRequestTimeout is how long a stream may take until its first request, RecheckInterval how often its identity is
	// checked again, and StopTimeout how long streams may take to end with the server.
	FirstRequestTimeout, RecheckInterval, StopTimeout time.Duration
}

// Server speaks the aggregated discovery service.
type Server struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	options    Options
	rejections *rejectionLog
	admission  *admission
	stopped    context.Context
	stop       context.CancelFunc
}

// NewServer returns a server that does not serve yet.
func NewServer(options Options) *Server {
	options.FirstRequestTimeout = cmp.Or(options.FirstRequestTimeout, 15*time.Second)
	options.RecheckInterval = cmp.Or(options.RecheckInterval, 5*time.Minute)
	options.StopTimeout = cmp.Or(options.StopTimeout, 5*time.Second)
	options.Limits = options.Limits.orDefaults()
	options.Store.maxStreams, options.Store.maxSubscriptions = options.Limits.Streams, options.Limits.subscriptionBytes()
	s := &Server{options: options, rejections: newRejectionLog(options.Log)}
	s.admission = newAdmission(options.Limits, 2*options.FirstRequestTimeout, s.rejections)
	s.stopped, s.stop = context.WithCancel(context.Background())
	return s
}

// Serve serves until the context ends. Streams then end with Unavailable, or are closed after StopTimeout.
func (s *Server) Serve(ctx context.Context, listener net.Listener, transport credentials.TransportCredentials) error {
	server := grpc.NewServer(
		grpc.Creds(handshakes{transport, s.admission}),
		grpc.ConnectionTimeout(s.options.FirstRequestTimeout),
		grpc.MaxConcurrentStreams(uint32(s.options.Limits.Streams)),
		grpc.MaxRecvMsgSize(s.options.Limits.RequestBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.InTapHandle(s.admission.onStream),
		grpc.StaticStreamWindowSize(receiveWindow), grpc.StaticConnWindowSize(receiveWindow),
		grpc.ReadBufferSize(readBuffer), grpc.WriteBufferSize(writeBuffer),
		grpc.ForceServerCodecV2(newCodec(s.options.Limits.subscriptionBytes())),
		// Detects a dead connection within half a minute.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	discovery.RegisterAggregatedDiscoveryServiceServer(server, s)
	done := make(chan struct{})
	defer func() { <-done }()
	defer s.stop()
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-s.stopped.Done():
		}
		s.stop()
		hard := time.AfterFunc(s.options.StopTimeout, server.Stop)
		defer hard.Stop()
		server.GracefulStop()
	}()
	err := server.Serve(s.admission.listen(listener))
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil // it was told to stop before it had begun
	}
	return err
}

// StreamAggregatedResources serves a state-of-the-world stream.
func (s *Server) StreamAggregatedResources(stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.runStream(stream.Context(), func(one *session) error {
		return sotw.NewServer(one.ctx, one, one, sotw.WithOrderedADS(), withoutWildcard(sotw.DeactivateLegacyWildcardForTypes)).
			StreamHandler(sotwStream{stream, one}, xds.AnyType)
	})
}

// DeltaAggregatedResources serves an incremental stream.
func (s *Server) DeltaAggregatedResources(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.runStream(stream.Context(), func(one *session) error {
		return delta.NewServer(one.ctx, one, one, withoutWildcard(delta.DeactivateLegacyWildcardForTypes)).
			DeltaStreamHandler(deltaStream{stream, one}, xds.AnyType)
	})
}

// withoutWildcard lists the types of which an empty subscription is none, not a wildcard.
func withoutWildcard[O any](option func([]string) O) O {
	return option([]string{resource.Endpoint.URL(), resource.Route.URL()})
}

// runStream runs a stream until it ends. A stream that blocks, since its proxy does not read, is abandoned when it has to
// end: gRPC then closes it.
func (s *Server) runStream(parent context.Context, serve func(*session) error) error {
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	connection, address := connectionOf(parent), addressOf(parent)
	if isCompressed(parent) {
		err := rejectf(causeRequest, codes.Unimplemented, "compressed requests are not accepted: send them without grpc-encoding")
		s.rejections.record(err, fmt.Sprint(address), "")
		connection.rejectedStream()
		return err
	}
	one := &session{
		store: s.options.Store, identify: s.identify, ctx: ctx, end: end, since: time.Now(), connection: connection,
		identified: make(chan model.ProxyID, 1), state: streamState{timing: s.options.Store.timing, references: s.options.Store.references},
		sendTimeout: s.options.Limits.SendTimeout,
	}
	one.reject = func(node string, err error) {
		s.rejections.record(err, fmt.Sprint(address), node)
		connection.rejectedStream()
	}
	one.sendTimer = time.AfterFunc(one.sendTimeout, one.onSendTimeout)
	one.sendTimer.Stop()
	pending := s.admission.streams.add(sourceOf(address), end)
	defer pending.remove()
	var id model.ProxyID
	defer func() {
		if err := context.Cause(ctx); isRejection(err) {
			one.reject(id.String(), err)
		}
	}()
	done := make(chan error, 1)
	go func() { done <- serve(one) }()
	firstRequest, recheck := time.NewTimer(s.options.FirstRequestTimeout), time.NewTicker(s.options.RecheckInterval)
	defer firstRequest.Stop()
	defer recheck.Stop()
	for {
		select {
		case err := <-done:
			if ended := context.Cause(ctx); parent.Err() == nil && ended != nil {
				return ended
			}
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.stopped.Done():
			return status.Error(codes.Unavailable, "the control plane is shutting down: reconnect")
		case id = <-one.identified:
			firstRequest.Stop()
			pending.remove()
			connection.identified()
		case <-firstRequest.C:
			end(rejectf(causeTimeout, codes.DeadlineExceeded, "no request within %s: send a request with the node id", s.options.FirstRequestTimeout))
		case <-recheck.C:
			if id == (model.ProxyID{}) {
				continue
			}
			if err := s.options.Identify(ctx, id); isIdentityError(err) {
				end(rejectf(causeIdentity, status.Code(err), "proxy %s is no longer identified: %s", id, status.Convert(err).Message()))
			}
		}
	}
}

// identify authenticates the node of a stream.
func (s *Server) identify(ctx context.Context, node string) (model.ProxyID, error) {
	id, err := model.ParseProxyID(node, s.options.Namespaced)
	if err != nil {
		return id, status.Error(codes.InvalidArgument, err.Error())
	}
	if s.options.Precheck != nil {
		err = s.options.Precheck(ctx, id)
	}
	if err == nil {
		s.options.Store.waitForProxy(ctx, id)
		err = s.options.Identify(ctx, id)
	}
	if _, isStatus := status.FromError(err); !isStatus {
		err = status.Errorf(codes.Unauthenticated, "proxy %s: %v", node, err)
	}
	return id, err
}

// isIdentityError says whether an identity is wrong, rather than not checked.
func isIdentityError(err error) bool {
	code := status.Code(err)
	return code == codes.Unauthenticated || code == codes.PermissionDenied
}
