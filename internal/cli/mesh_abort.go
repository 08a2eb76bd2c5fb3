package cli

import (
	"context"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// abortMesh lets all consumers go back.
func (c *cluster) abortMesh(ctx context.Context, streams Streams, r resource, confirm *confirmation) error {
	mesh, err := c.mesh(ctx, r)
	if err != nil {
		return err
	}
	intent := consumers.Intent{ID: string(uuid.NewUUID()), BatchSize: 1, Revert: true}
	if record := mesh.Status.Migration; record != nil {
		intent.BatchSize = max(record.BatchSize, 1)
	}
	return c.migrate(ctx, streams, r, migrateOptions{intent, desired.ZoneInfo{}, confirm, false})
}
