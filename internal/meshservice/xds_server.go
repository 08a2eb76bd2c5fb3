package meshservice

import (
	"context"
	"fmt"
	"net"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/xds/server"
)

// proxyServer is a runnable that serves the store over xDS.
type proxyServer struct {
	options ServingOptions
	where   desired.ZoneInfo
	store   *server.Store
	manager ctrl.Manager
}

// Start serves until the context ends.
func (s *proxyServer) Start(ctx context.Context) error {
	log := s.manager.GetLogger().WithName("mesh")
	transport, identify, err := s.identity()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.options.BindAddress)
	if err != nil {
		return fmt.Errorf("serve proxies at --mesh-bind-address: %w", err)
	}
	if s.options.Pod != "" {
		if err := labelServingPod(ctx, s.manager.GetAPIReader(), s.manager.GetClient(), s.options.Pod); err != nil {
			return err
		}
	}
	log.Info("serving proxies", "address", listener.Addr().String())
	return server.NewServer(server.Options{
		Store: s.store, Identify: identify, Namespaced: !s.where.IsUniversal(), Log: log,
	}).Serve(ctx, listener, transport)
}
