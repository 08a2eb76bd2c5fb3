// Package materialize is what commands know about a Materialize and its rollouts.
package materialize

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// Kind is Materialize.
type Kind struct{}

func (*Kind) GroupKinds() []schema.GroupKind {
	return []schema.GroupKind{v1alpha2.GroupVersion.WithKind(v1alpha2.MaterializeKind).GroupKind()}
}

func (*Kind) Status(ctx context.Context, c *connect.Cluster, r connect.Resource) (render.Status, error) {
	e, err := getEnvironment(ctx, c.Client, r.Key)
	if err != nil {
		return nil, err
	}
	return e.newStatus(time.Now()), nil
}

// RetryHint is how to roll out again.
func (*Kind) RetryHint() string {
	return "a Materialize is rolled out again with a new UUID in spec.forceRollout"
}

func (*Kind) Promote(ctx context.Context, c *connect.Cluster, r connect.Resource, streams console.Streams, confirm *console.Confirmation) error {
	return editRollout(ctx, c, r, streams, confirm, planPromotion)
}

func (*Kind) Abort(ctx context.Context, c *connect.Cluster, r connect.Resource, streams console.Streams, confirm *console.Confirmation) error {
	return editRollout(ctx, c, r, streams, confirm, planAbort)
}
