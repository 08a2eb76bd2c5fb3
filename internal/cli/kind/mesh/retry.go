package mesh

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fairlead/fairlead/api/fairlead"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/render"
)

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
