// Package kind is what commands know about the kinds that passages start from.
package kind

import (
	"context"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/manifest"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// Kind is one that a passage starts from. Each can be paused and resumed. What else a command can do with it, it says by
// implementing the interfaces below. A Kind holds the values of flags, so that each command has its own.
type Kind interface {
	GroupKinds() []schema.GroupKind
	// Status is how far the operator is with a resource.
	Status(ctx context.Context, c *connect.Cluster, r connect.Resource) (render.Status, error)
}

// Watcher is a Kind that is watched. Others are polled.
type Watcher interface {
	Watch(ctx context.Context, c *connect.Cluster, r connect.Resource) (Watch, error)
}

// Planner is a Kind whose plan can be made outside the operator.
type Planner interface {
	Plan(ctx context.Context, c *connect.Cluster, r connect.Resource) (render.Plan, error)
}

// PlanFlagger is a Planner with flags of its own.
type PlanFlagger interface {
	// AddPlanFlags adds the flags, the most important one first.
	AddPlanFlags(flags *pflag.FlagSet)
	ValidatePlanFlags() error
}

// PlanHinter is a Kind whose plan is part of the plan of another kind.
type PlanHinter interface {
	// PlanHint says which plan, and which command shows it.
	PlanHint() string
}

// ManifestPlanner is a Kind that can be planned as if a manifest were applied by a field manager.
type ManifestPlanner interface {
	PlanManifest(ctx context.Context, c *connect.Cluster, r connect.Resource, m manifest.Manifest, manager string) (render.Plan, error)
}

// Retrier is a Kind of which something can fail for good, and be retried.
type Retrier interface {
	Retry(ctx context.Context, c *connect.Cluster, r connect.Resource, out io.Writer) error
}

// RetryHinter is a Kind of which nothing fails for good.
type RetryHinter interface {
	// RetryHint is what to do instead.
	RetryHint() string
}

// Promoter is a Kind whose rollout can be promoted.
type Promoter interface {
	Promote(ctx context.Context, c *connect.Cluster, r connect.Resource, streams console.Streams, confirm *console.Confirmation) error
}

// Aborter is a Kind whose passage can be reverted.
type Aborter interface {
	Abort(ctx context.Context, c *connect.Cluster, r connect.Resource, streams console.Streams, confirm *console.Confirmation) error
}

// Migrator is a Kind whose passage starts on demand.
type Migrator interface {
	AddMigrateFlags(flags *pflag.FlagSet)
	ValidateMigrateFlags() error
	// Migrate asks the operator to start. Without a confirmation it only shows what would be done.
	Migrate(ctx context.Context, c *connect.Cluster, r connect.Resource, streams console.Streams, confirm *console.Confirmation) error
}

// PolicyExplainer is a Kind that explains which policies apply to its parts.
type PolicyExplainer interface {
	AddExplainFlags(flags *pflag.FlagSet)
	ValidateExplainFlags() error
	ExplainPolicies(ctx context.Context, c *connect.Cluster, r connect.Resource, out io.Writer, format render.Format) error
	// PartHint is the command for a part that no passage starts from; empty for anything else.
	PartHint(r connect.Resource) string
}
