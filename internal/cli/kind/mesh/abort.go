package mesh

import (
	"context"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/meshservice/consumers"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// Abort has all consumers switched back.
func (*Kind) Abort(ctx context.Context, c *connect.Cluster, r connect.Resource, streams console.Streams, confirm *console.Confirmation) error {
	mesh, err := getMesh(ctx, c.Client, r)
	if err != nil {
		return err
	}
	intent := consumers.Intent{ID: string(uuid.NewUUID()), BatchSize: 1, Revert: true}
	if record := mesh.Status.Migration; record != nil {
		intent.BatchSize = max(record.BatchSize, 1)
	}
	return migrate(ctx, c, r, streams, confirm, intent, desired.ZoneInfo{})
}
