// Package mesh is what commands know about a Mesh, its consumers and its Dataplanes.
package mesh

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
)

// Kind is Mesh.
type Kind struct {
	zone    zoneFlags
	planned planFlags
	// intent and environment are what to migrate.
	intent      consumers.Intent
	environment string
}

func (*Kind) GroupKinds() []schema.GroupKind {
	return []schema.GroupKind{kumav1alpha1.GroupVersion.WithKind(kumav1alpha1.MeshKind).GroupKind()}
}

func getMesh(ctx context.Context, reader client.Reader, r connect.Resource) (*kumav1alpha1.Mesh, error) {
	mesh := &kumav1alpha1.Mesh{}
	if err := reader.Get(ctx, r.Key, mesh); err != nil {
		return nil, r.NotFoundOr(fmt.Errorf("get %s: %w", r, err))
	}
	return mesh, nil
}

func (*Kind) Status(ctx context.Context, c *connect.Cluster, r connect.Resource) (render.Status, error) {
	mesh, err := getMesh(ctx, c.Client, r)
	if err != nil {
		return nil, err
	}
	return newStatus(mesh, time.Now()), nil
}

// Watch keeps a copy of one Mesh.
func (*Kind) Watch(ctx context.Context, c *connect.Cluster, r connect.Resource) (kind.Watch, error) {
	if _, err := getMesh(ctx, c.Client, r); err != nil {
		return kind.Watch{}, err
	}
	w, err := kind.NewWatchCache(c, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&kumav1alpha1.Mesh{}: {Field: fields.OneTermEqualSelector("metadata.name", r.Key.Name)},
	}})
	if err != nil {
		return kind.Watch{}, err
	}
	if err := w.WatchKinds(ctx, &kumav1alpha1.Mesh{}); err != nil {
		return kind.Watch{}, err
	}
	if err := w.Run(ctx); err != nil {
		return kind.Watch{}, err
	}
	return w.Watch(func(ctx context.Context) (render.Status, error) {
		mesh, err := getMesh(ctx, w, r)
		if err != nil {
			return nil, err
		}
		return newStatus(mesh, time.Now()), nil
	}), nil
}
