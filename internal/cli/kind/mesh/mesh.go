// Package mesh is what commands know about a Mesh, its consumers and its Dataplanes.
package mesh

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// Kind is Mesh.
type Kind struct {
	zone    desired.ZoneInfo
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
	return readStatus(ctx, c.Client, r)
}

func readStatus(ctx context.Context, reader client.Reader, r connect.Resource) (render.Status, error) {
	mesh, err := getMesh(ctx, reader, r)
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
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&kumav1alpha1.Mesh{}: {Field: fields.OneTermEqualSelector("metadata.name", r.Key.Name)},
	}}
	return kind.NewCachedWatch(ctx, c, options, []client.Object{&kumav1alpha1.Mesh{}}, func(ctx context.Context, reader client.Reader) (render.Status, error) {
		return readStatus(ctx, reader, r)
	})
}

// Retry changes an annotation: the operator retries when the value is another one.
func (*Kind) Retry(ctx context.Context, c *connect.Cluster, r connect.Resource, out io.Writer) error {
	mesh, err := getMesh(ctx, c.Client, r)
	if err != nil {
		return err
	}
	if record := mesh.Status.Migration; record == nil || record.Failed == 0 {
		fmt.Fprintf(out, "%s has no consumers that failed\n", r)
		return nil
	}
	if err := c.Annotate(ctx, r, fairlead.AnnotationRetry, string(uuid.NewUUID())); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	fmt.Fprintf(out, "%s: %s to be tried again\n", r, render.Count(int(mesh.Status.Migration.Failed), "consumer"))
	return nil
}
