package consumers

import (
	"time"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func (r *reconciler) observe(mesh *kumav1alpha1.Mesh) (o Observed, ok bool) {
	o = Observed{Mesh: mesh, Serving: r.options.Serving, Timeout: r.options.Timeout}
	if !o.Serving {
		return o, true
	}
	if o.Sent, ok = r.options.Sent(mesh.Name); !ok {
		return o, false
	}
	o.Proxies, o.Connection = r.options.Proxies.Proxies(mesh.Name), r.options.Connections.Connection
	return o, true
}

// Observed is all that a decision is made from.
type Observed struct {
	Mesh *kumav1alpha1.Mesh
	// Serving says that this process gives proxies their configuration.
	Serving bool
	// Proxies are those of the mesh, and Connection is how each of them stands.
	Proxies    []model.Proxy
	Connection func(model.ProxyID) model.Connection
	// Sent are the consumers that are switched in what the connections are measured by.
	Sent map[string]bool
	// Started is when this process began to serve: proxies need time to find it.
	Started time.Time
	// Timeout is how long proxies have to acknowledge.
	Timeout time.Duration
}
