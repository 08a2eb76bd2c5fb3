package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// retryMesh asks for what has failed to be tried again. Only that the value is another one counts.
func retryMesh(ctx context.Context, c *connect.Cluster, streams Streams, r connect.Resource) error {
	mesh, err := getMesh(ctx, c, r)
	if err != nil {
		return err
	}
	if record := mesh.Status.Migration; record == nil || record.Failed == 0 {
		fmt.Fprintf(streams.Out, "%s has no consumers that failed\n", r)
		return nil
	}
	if err := c.Annotate(ctx, r, fairlead.AnnotationRetry, string(uuid.NewUUID())); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	fmt.Fprintf(streams.Out, "%s: %s to be tried again\n", r, render.Count(int(mesh.Status.Migration.Failed), "consumer"))
	return nil
}

func getMesh(ctx context.Context, c *connect.Cluster, r connect.Resource) (*kumav1alpha1.Mesh, error) {
	mesh := &kumav1alpha1.Mesh{}
	if err := c.Client.Get(ctx, r.Key, mesh); apierrors.IsNotFound(err) {
		return nil, r.NotFound()
	} else if err != nil {
		return nil, fmt.Errorf("get %s: %w", r, err)
	}
	return mesh, nil
}
