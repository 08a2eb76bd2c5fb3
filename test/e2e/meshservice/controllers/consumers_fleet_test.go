package controllers_test

import (
	"maps"
	"slices"
	"sync"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// fleet plays the proxies of a mesh, and what gives them their configuration. It lives as long as one operator does.
type fleet struct {
	mu          sync.Mutex
	proxies     []model.Proxy
	sent        map[string]bool
	connections map[model.ProxyID]model.Connection
	listeners   []func(model.ProxyID)
	// refuses is the proxy that does not take what it is given once its consumer is switched.
	refuses string
}

// newFleet has two proxies for each consumer, all of them connected and content.
func newFleet(mesh, refuses string, consumers ...string) *fleet {
	f := &fleet{connections: map[model.ProxyID]model.Connection{}, refuses: refuses}
	for _, consumer := range consumers {
		for _, suffix := range []string{"-0", "-1"} {
			id := model.ProxyID{Mesh: mesh, Namespace: "shop", Name: consumer + suffix}
			f.proxies = append(f.proxies, model.Proxy{ID: id, Consumer: "shop/Deployment/" + consumer})
			f.connections[id] = model.Connection{Connected: true, Current: true}
		}
	}
	return f
}

// follow gives proxies what the record of a Mesh says, and has them answer.
func (f *fleet) follow(mesh *kumav1alpha1.Mesh) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := consumers.Switched(mesh)
	for _, p := range f.proxies {
		if f.sent[p.Consumer] == now[p.Consumer] {
			continue
		}
		f.connections[p.ID] = model.Connection{Connected: true}
		go f.answer(p, now[p.Consumer])
	}
	f.sent = now
}

func (f *fleet) answer(p model.Proxy, switched bool) {
	f.mu.Lock()
	if f.sent[p.Consumer] == switched {
		c := model.Connection{Connected: true, Current: true}
		if switched && p.ID.Name == f.refuses {
			c = model.Connection{Connected: true, NACK: "unknown field"}
		}
		f.connections[p.ID] = c
	}
	listeners := slices.Clone(f.listeners)
	f.mu.Unlock()
	for _, listener := range listeners {
		listener(p.ID)
	}
}

func (f *fleet) Connection(id model.ProxyID) model.Connection {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connections[id]
}

func (f *fleet) Proxies(mesh string) []model.Proxy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.proxies), func(p model.Proxy) bool { return p.ID.Mesh != mesh })
}

func (f *fleet) sentTo(string) (map[string]bool, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.sent), f.sent != nil
}

func (f *fleet) changes(listener func(model.ProxyID)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, listener)
}
