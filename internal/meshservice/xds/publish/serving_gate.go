package publish

import (
	"sync"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// servingGate holds the proxies of a mesh until the mesh may be served.
type servingGate struct {
	mu      sync.Mutex
	opened  map[string]bool
	waiting map[string]map[model.ProxyID]bool
}

func (g *servingGate) open(mesh string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = map[string]bool{}
	}
	g.opened[mesh] = true
}

func (g *servingGate) close(mesh string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.opened, mesh)
}

// isOpen says whether a mesh may be served.
func (g *servingGate) isOpen(mesh string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened[mesh]
}

// admit returns the proxies that may be served, of the changed and of the held ones.
func (g *servingGate) admit(changed []model.ProxyID) []model.ProxyID {
	g.mu.Lock()
	defer g.mu.Unlock()
	var passing []model.ProxyID
	for _, id := range changed {
		if g.opened[id.Mesh] {
			passing = append(passing, id)
			continue
		}
		if g.waiting == nil {
			g.waiting = map[string]map[model.ProxyID]bool{}
		}
		if g.waiting[id.Mesh] == nil {
			g.waiting[id.Mesh] = map[model.ProxyID]bool{}
		}
		g.waiting[id.Mesh][id] = true
	}
	for mesh, ids := range g.waiting {
		if !g.opened[mesh] {
			continue
		}
		for id := range ids {
			passing = append(passing, id)
		}
		delete(g.waiting, mesh)
	}
	return passing
}
