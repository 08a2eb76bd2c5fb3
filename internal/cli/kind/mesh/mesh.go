// Package mesh is what commands know about a Mesh, its consumers and its Dataplanes.
package mesh

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Kind is Mesh.
type Kind struct {
	// zone of the operator, if that is not as recorded in the Mesh.
	zone desired.ZoneInfo
	// mode, consumers and switched are the changes to plan for.
	mode      string
	consumers []string
	switched  bool
	// intent is what to migrate.
	intent consumers.Intent
}

func (*Kind) GroupKinds() []schema.GroupKind {
	return []schema.GroupKind{kumav1alpha1.GroupVersion.WithKind(kumav1alpha1.MeshKind).GroupKind()}
}

func (*Kind) Hints() map[string]string {
	return map[string]string{"plan -f": "a Mesh is planned with --mode"}
}

func (k *Kind) AddFlags(command string, flags *pflag.FlagSet) {
	switch command {
	case "migrate":
		k.intent.ID = string(uuid.NewUUID())
		flags.Int32Var(&k.intent.BatchSize, "batch-size", 1, "how many consumers to switch at a time")
		flags.DurationVar(&k.intent.Delay.Duration, "delay", 0, "how long to wait between a batch and the next one")
		flags.StringSliceVar(&k.intent.Consumers, "consumers", nil, "switch only these, such as shop/Deployment/cart; in universal, the names of Dataplanes")
		flags.BoolVar(&k.intent.AllowDisconnected, "allow-disconnected", false, "also switch consumers with proxies that are not connected, without the acknowledgement of these")
		flags.BoolVar(&k.intent.Revert, "revert", false, "switch consumers back")
		flags.StringVar(&k.zone.Environment, "mesh-environment", desired.Kubernetes, "environment of the operator: kubernetes or universal")
	case "plan":
		flags.StringVar(&k.mode, "mode", "", "plan as if spec.meshServices of the Mesh had this value: Disabled, Everywhere, ReachableBackendRefs or Exclusive")
		flags.StringSliceVar(&k.consumers, "consumer", nil, "plan as if these consumers of the Mesh were switched over, such as shop/Deployment/cart")
		flags.BoolVar(&k.switched, "switched", false, "plan as if all consumers of the Mesh were switched over")
		k.addZoneFlags(flags)
	case "status":
		k.addZoneFlags(flags)
	}
}

func (k *Kind) addZoneFlags(flags *pflag.FlagSet) {
	flags.StringVar(&k.zone.Zone, "mesh-zone", "", "zone that the operator serves (default: as recorded by the operator)")
	flags.StringVar(&k.zone.Environment, "mesh-environment", "", "environment of that zone: kubernetes or universal (default: as recorded by the operator)")
	flags.StringVar(&k.zone.SystemNamespace, "mesh-namespace", "", "system namespace of the mesh (default: kuma-system)")
}

// The modes as users may write them.
var modes = map[string]model.Mode{
	"": "", "disabled": model.Disabled, "everywhere": model.Everywhere, "exclusive": model.Exclusive,
	"reachablebackendrefs": model.ReachableBackendRefs, "reachablebackends": model.ReachableBackendRefs,
}

func (k *Kind) ValidateFlags() error {
	if k.intent.ID != "" {
		if err := k.intent.Validate(); err != nil {
			return console.UsageErrorf("%v", err)
		}
	}
	if _, known := modes[strings.ToLower(k.mode)]; !known {
		return console.UsageErrorf("--mode %s is none of Disabled, Everywhere, ReachableBackendRefs and Exclusive", k.mode)
	}
	if k.switched && len(k.consumers) > 0 {
		return console.UsageErrorf("--switched is all consumers already: leave out --consumer, or --switched")
	}
	if !slices.Contains([]string{"", desired.Kubernetes, desired.Universal}, k.zone.Environment) {
		return console.UsageErrorf("--mesh-environment %s is neither %s nor %s", k.zone.Environment, desired.Kubernetes, desired.Universal)
	}
	return nil
}

// getMesh reads a Mesh, and the record of its consumers.
func getMesh(ctx context.Context, reader client.Reader, r connect.Resource) (*kumav1alpha1.Mesh, error) {
	mesh := &kumav1alpha1.Mesh{}
	if err := r.Get(ctx, reader, mesh); err != nil {
		return nil, err
	}
	return consumers.ReadRecord(ctx, reader, mesh)
}

func (*Kind) Status(ctx context.Context, reader client.Reader, r connect.Resource) (render.Status, error) {
	mesh, err := getMesh(ctx, reader, r)
	if err != nil {
		return nil, err
	}
	return newStatus(mesh, time.Now()), nil
}

// Watch keeps a copy of one Mesh and the record of its consumers.
func (k *Kind) Watch(ctx context.Context, r connect.Resource) (kind.Watch, error) {
	if _, err := getMesh(ctx, r.Cluster.Client, r); err != nil {
		return kind.Watch{}, err
	}
	watched := watchedObjects(r.Key.Name, r.Cluster.Mapper)
	return kind.NewCachedWatch(ctx, r, cache.Options{ByObject: watched}, slices.Collect(maps.Keys(watched)), k.Status)
}

// watchedObjects are what a status is made of: the Mesh, and its slices, which an earlier version of the operator does not have.
func watchedObjects(mesh string, mapper meta.RESTMapper) map[client.Object]cache.ByObject {
	watched := map[client.Object]cache.ByObject{
		&kumav1alpha1.Mesh{}: {Field: fields.OneTermEqualSelector("metadata.name", mesh)},
	}
	slice := fairleadv1alpha1.GroupVersion.WithKind(fairleadv1alpha1.MeshConsumerSliceKind)
	if _, err := mapper.RESTMapping(slice.GroupKind(), slice.Version); !meta.IsNoMatchError(err) {
		watched[&fairleadv1alpha1.MeshConsumerSlice{}] = cache.ByObject{Label: labels.SelectorFromSet(labels.Set{kumav1alpha1.LabelMesh: mesh})}
	}
	return watched
}

// Retry changes an annotation: the operator retries when the value is another one.
func (*Kind) Retry(ctx context.Context, r connect.Resource) (kind.Change, error) {
	mesh, err := getMesh(ctx, r.Cluster.Client, r)
	if err != nil {
		return kind.Change{}, err
	}
	if record := mesh.Status.Migration; record == nil || record.Failed == 0 {
		return kind.Change{Noop: fmt.Sprintf("%s has no consumers that failed", r)}, nil
	}
	return kind.Change{
		Apply: func(ctx context.Context) error {
			return r.Annotate(ctx, fairlead.AnnotationRetry, string(uuid.NewUUID()))
		},
		Done: fmt.Sprintf("%s: %s to be tried again", r, render.Count(int(mesh.Status.Migration.Failed), "consumer")),
	}, nil
}
