package generate

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// strandedRequeueDelay is the delay until stranded consumers are looked for again: what they reach may change with their pods,
// with MeshServices and with a switch.
const strandedRequeueDelay = 5 * time.Second

// strandedConsumers returns the consumers that mode Exclusive would leave with nothing. They are looked for before the mode is
// in force: afterwards it takes nothing away.
func (r *reconciler) strandedConsumers(ctx context.Context, mesh *kumav1alpha1.Mesh) ([]string, error) {
	if mesh.Mode() != kumav1alpha1.ModeExclusive || mesh.Status.Mode == kumav1alpha1.ModeExclusive {
		return nil, nil
	}
	destinations, _, err := r.destinationsOf(ctx, mesh.Name)
	if err != nil {
		return nil, err
	}
	recorded, err := consumers.ReadRecord(ctx, r.client, mesh)
	if err != nil {
		return nil, err
	}
	var dataplanes kumav1alpha1.DataplaneList
	if err := r.cache.List(ctx, &dataplanes, client.MatchingFields{byMesh: mesh.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return stranded(pointersTo(dataplanes.Items), destinations, consumers.Switched(recorded), r.ZoneInfo), nil
}

func stranded(dataplanes []*kumav1alpha1.Dataplane, destinations []model.Destination, switched map[string]bool, where desired.ZoneInfo) []string {
	targets := make([]model.Target, len(destinations))
	for i := range destinations {
		targets[i] = destinations[i].Target
	}
	// Most proxies have the same reach, which is checked once.
	checked, names := map[string]bool{}, sets.New[string]()
	for _, dataplane := range dataplanes {
		reach, consumer := desired.ReachOf(dataplane, where), desired.ConsumerIn(dataplane, where)
		if switched[consumer] {
			reach = reach.WithMeshServices()
		}
		text, err := json.Marshal(reach)
		if err != nil {
			panic(err) // strings and maps can always be encoded
		}
		is, known := checked[string(text)]
		if !known {
			is = reach.IsStranded(targets)
			checked[string(text)] = is
		}
		if is {
			names.Insert(consumer)
		}
	}
	return sets.List(names)
}
