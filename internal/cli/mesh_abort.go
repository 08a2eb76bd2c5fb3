package cli

import (
	"context"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// abortMesh lets all consumers go back.
func abortMesh(ctx context.Context, c *connect.Cluster, streams Streams, r connect.Resource, confirm *console.Confirmation) error {
	mesh, err := getMesh(ctx, c, r)
	if err != nil {
		return err
	}
	intent := consumers.Intent{ID: string(uuid.NewUUID()), BatchSize: 1, Revert: true}
	if record := mesh.Status.Migration; record != nil {
		intent.BatchSize = max(record.BatchSize, 1)
	}
	return migrateMesh(ctx, c, streams, r, migrateOptions{intent, desired.ZoneInfo{}, confirm, false})
}
