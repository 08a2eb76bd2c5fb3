// Package callers has what tests and demonstrations call, and what calls it, through the mesh and without a proxy.
package callers

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Method is what callers call: it takes nothing and says in which zone it was answered.
const Method = "/fairlead.Echo/Zone"

// Echo is a server that says in which zone it is.
type Echo struct {
	zone     string
	listener net.Listener
	server   *grpc.Server
	// held is closed when answers are no longer held, and nil when they are not.
	held atomic.Pointer[chan struct{}]
	// timeout is what the last call was given, 0 if it was given none.
	timeout atomic.Int64
}

// StartEcho serves on an address, of which a port 0 is any.
func StartEcho(address, zone string) (*Echo, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for zone %s: %w", zone, err)
	}
	e := &Echo{zone: zone, listener: listener, server: grpc.NewServer()}
	e.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "fairlead.Echo",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Zone", Handler: e.handle}},
	}, e)
	go func() { _ = e.server.Serve(listener) }()
	return e, nil
}

func (e *Echo) handle(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	if err := decode(&emptypb.Empty{}); err != nil {
		return nil, err
	}
	var timeout time.Duration
	if end, limited := ctx.Deadline(); limited {
		timeout = max(time.Until(end), 1)
	}
	e.timeout.Store(int64(timeout))
	if held := e.held.Load(); held != nil {
		select {
		case <-*held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return wrapperspb.String(e.zone), nil
}

// Hold has every call wait for its answer until the function is called that it returns.
func (e *Echo) Hold() (release func()) {
	held := make(chan struct{})
	e.held.Store(&held)
	return sync.OnceFunc(func() {
		e.held.Store(nil)
		close(held)
	})
}

// Timeout is what the client had left for the last call, if it was given a timeout at all.
func (e *Echo) Timeout() (time.Duration, bool) {
	left := time.Duration(e.timeout.Load())
	return left, left > 0
}

// Address is where it listens.
func (e *Echo) Address() *net.TCPAddr { return e.listener.Addr().(*net.TCPAddr) }

// Stop cuts everybody off.
func (e *Echo) Stop() { e.server.Stop() }
