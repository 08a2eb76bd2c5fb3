package meshservice

import (
	"context"
	"fmt"
	"net"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead/fairlead/internal/meshservice/ads"
	"github.com/fairlead/fairlead/internal/meshservice/generate"
)

// server is a runnable that gives proxies what is in the store.
type server struct {
	options ServingOptions
	where   generate.Where
	store   *ads.Store
	manager ctrl.Manager
}

// Start serves until the context ends.
func (s *server) Start(ctx context.Context) error {
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
		if err := mark(ctx, s.manager.GetAPIReader(), s.manager.GetClient(), s.options.Pod); err != nil {
			return err
		}
	}
	log.Info("serving proxies", "address", listener.Addr().String())
	return ads.NewServer(ads.Options{
		Store: s.store, Identify: identify, Namespaced: !s.where.IsUniversal(), Log: log,
	}).Serve(ctx, listener, transport)
}
