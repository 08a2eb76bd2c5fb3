package consumers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// observe reads what is published and connected; false while the mesh is not published.
func (r *reconciler) observe(ctx context.Context, mesh *kumav1alpha1.Mesh, recorded []fairleadv1alpha1.MeshConsumerSlice) (o Observed, ok bool) {
	defer kube.Span(&ctx, kube.StageObserve)()
	o = Observed{Mesh: WithRecord(mesh, recorded), Slices: recorded, Serving: r.options.Serving, Timeout: r.options.Timeout}
	if !o.Serving {
		return o, true
	}
	if o.Sent, ok = r.options.Sent(mesh.Name); !ok {
		return o, false
	}
	if o.Reported = r.options.Reported; o.Reported {
		o.Sent = nil
	}
	o.Proxies, o.Connection = r.options.Proxies(mesh.Name), r.options.Connection
	return o, true
}

// Observed is the input of Decide.
type Observed struct {
	// Mesh is the Mesh with the record of its Slices.
	Mesh   *kumav1alpha1.Mesh
	Slices []fairleadv1alpha1.MeshConsumerSlice
	// Serving says that this process, or another one that reports to it, serves xDS.
	Serving bool
	// Proxies are those of the mesh, and Connection returns the state of each.
	Proxies    []model.Proxy
	Connection func(model.ProxyID) model.Connection
	// Sent are the consumers that are switched in the published configurations. It says nothing if other processes serve the
	// proxies: a connection is then Reported, and says itself which configuration it is about.
	Sent     map[string]bool
	Reported bool
	// Started is when this process began to serve: proxies need time to reconnect.
	Started time.Time
	// Timeout is how long proxies may take to acknowledge.
	Timeout time.Duration
}

// listSlices returns the slices of a Mesh, sorted by name; none in a cluster that does not have the kind yet.
func listSlices(ctx context.Context, reader client.Reader, mesh string) ([]fairleadv1alpha1.MeshConsumerSlice, error) {
	var list fairleadv1alpha1.MeshConsumerSliceList
	err := reader.List(ctx, &list, client.MatchingLabels{kumav1alpha1.LabelMesh: mesh})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the MeshConsumerSlices of Mesh %s: %w", mesh, err)
	}
	slices.SortFunc(list.Items, func(a, b fairleadv1alpha1.MeshConsumerSlice) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// ReadRecord returns a Mesh with the record of its slices, as WithRecord does.
func ReadRecord(ctx context.Context, reader client.Reader, mesh *kumav1alpha1.Mesh) (*kumav1alpha1.Mesh, error) {
	all, err := listSlices(ctx, reader, mesh.Name)
	return WithRecord(mesh, all), err
}
