package consumers

import (
	"time"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// observe reads what is published and connected; false while the mesh is not published.
func (r *reconciler) observe(mesh *kumav1alpha1.Mesh) (o Observed, ok bool) {
	o = Observed{Mesh: mesh, Serving: r.options.Serving, Timeout: r.options.Timeout}
	if !o.Serving {
		return o, true
	}
	if o.Sent, ok = r.options.Sent(mesh.Name); !ok {
		return o, false
	}
	o.Proxies, o.Connection = r.options.Proxies(mesh.Name), r.options.Connection
	return o, true
}

// Observed is the input of Decide.
type Observed struct {
	Mesh *kumav1alpha1.Mesh
	// Serving says that this process serves xDS.
	Serving bool
	// Proxies are those of the mesh, and Connection returns the state of each.
	Proxies    []model.Proxy
	Connection func(model.ProxyID) model.Connection
	// Sent are the consumers that are switched in the published configurations.
	Sent map[string]bool
	// Started is when this process began to serve: proxies need time to reconnect.
	Started time.Time
	// Timeout is how long proxies may take to acknowledge.
	Timeout time.Duration
}
