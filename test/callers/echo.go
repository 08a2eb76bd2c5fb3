// Package callers has what tests and demonstrations call, and what calls it, through the mesh and without a proxy.
package callers

import (
	"context"
	"fmt"
	"net"
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
	delay    atomic.Int64
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
	if delay := time.Duration(e.delay.Load()); delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return wrapperspb.String(e.zone), nil
}

// Delay has every answer take so long.
func (e *Echo) Delay(d time.Duration) { e.delay.Store(int64(d)) }

// Address is where it listens.
func (e *Echo) Address() *net.TCPAddr { return e.listener.Addr().(*net.TCPAddr) }

// Stop cuts everybody off.
func (e *Echo) Stop() { e.server.Stop() }
