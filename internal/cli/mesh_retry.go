package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// retryMesh asks for what has failed to be tried again. Only that the value is another one counts.
func (c *cluster) retryMesh(ctx context.Context, streams Streams, r resource) error {
	mesh, err := c.mesh(ctx, r)
	if err != nil {
		return err
	}
	if record := mesh.Status.Migration; record == nil || record.Failed == 0 {
		fmt.Fprintf(streams.Out, "%s has no consumers that failed\n", r)
		return nil
	}
	if err := c.annotate(ctx, r, fairlead.AnnotationRetry, string(uuid.NewUUID())); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	fmt.Fprintf(streams.Out, "%s: %s to be tried again\n", r, count(int(mesh.Status.Migration.Failed), "consumer"))
	return nil
}

func (c *cluster) mesh(ctx context.Context, r resource) (*kumav1alpha1.Mesh, error) {
	mesh := &kumav1alpha1.Mesh{}
	if err := c.client.Get(ctx, r.key, mesh); apierrors.IsNotFound(err) {
		return nil, r.notFound()
	} else if err != nil {
		return nil, fmt.Errorf("get %s: %w", r, err)
	}
	return mesh, nil
}
