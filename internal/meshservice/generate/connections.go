package generate

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// watchConnections enqueues the MeshServices of proxies that connect or disconnect.
func (s *statuses) watchConnections(ctx context.Context, q queue) error {
	there := connectionTracker{connected: map[model.ProxyID]bool{}}
	s.Connections.OnChange(func(id model.ProxyID) {
		if !there.changed(id, func() bool { return s.Connections.Connection(id).Connected }) {
			return
		}
		var list kumav1alpha1.DataplaneList
		if err := s.cache.List(ctx, &list, client.MatchingFields{byProxy: id.String()}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the Dataplanes of a proxy", "proxy", id.String())
		}
		for i := range list.Items {
			s.enqueueServices(ctx, &list.Items[i], q)
		}
	})
	return nil
}

// connectionTracker filters out changes other than connects and disconnects.
type connectionTracker struct {
	mu        sync.Mutex
	connected map[model.ProxyID]bool
}

// changed says whether a proxy has connected or disconnected. A disconnect always counts, since the connect may have been
// missed.
func (p *connectionTracker) changed(id model.ProxyID, connected func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.connected[id]
	if !connected() {
		delete(p.connected, id)
		return true
	}
	p.connected[id] = true
	return !before
}
