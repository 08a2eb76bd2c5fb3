// Package kind is what commands know about the kinds that passages start from.
package kind

import (
	"context"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/manifest"
	"github.com/fairlead/fairlead/internal/cli/render"
)

// Kind is one that a passage starts from. Each can be paused and resumed. What else a command can do with it, it says by
// implementing the interfaces below. A Kind holds the values of flags, so that each command has its own.
type Kind interface {
	GroupKinds() []schema.GroupKind
	// Status is how far the operator is with a resource.
	Status(ctx context.Context, reader client.Reader, r connect.Resource) (render.Status, error)
}

// Hinter is a Kind that has no use for some commands.
type Hinter interface {
	// Hints are what to do instead, by command.
	Hints() map[string]string
}

// Flagger is a Kind with flags of its own.
type Flagger interface {
	// AddFlags adds the flags for a command.
	AddFlags(command string, flags *pflag.FlagSet)
	ValidateFlags() error
}

// Watcher is a Kind that is watched. Others are polled.
type Watcher interface {
	Watch(ctx context.Context, r connect.Resource) (Watch, error)
}

// Planner is a Kind whose plan can be made outside the operator.
type Planner interface {
	Plan(ctx context.Context, r connect.Resource) (render.Plan, error)
}

// ManifestPlanner is a Kind that can be planned as if a manifest were applied by a field manager.
type ManifestPlanner interface {
	PlanManifest(ctx context.Context, r connect.Resource, m manifest.Manifest, manager string) (render.Plan, error)
}

// Retrier is a Kind of which something can fail for good, and be retried.
type Retrier interface {
	Retry(ctx context.Context, r connect.Resource) (Change, error)
}

// Promoter is a Kind whose rollout can be promoted.
type Promoter interface {
	Promote(ctx context.Context, r connect.Resource) (Change, error)
}

// Aborter is a Kind whose passage can be reverted.
type Aborter interface {
	Abort(ctx context.Context, r connect.Resource) (Change, error)
}

// Migrator is a Kind whose passage starts on demand.
type Migrator interface {
	Migrate(ctx context.Context, r connect.Resource) (Change, error)
}

// PolicyExplainer is a Kind that explains which policies apply to its parts.
type PolicyExplainer interface {
	ExplainPolicies(ctx context.Context, r connect.Resource, out io.Writer, format render.Format) error
	// PartHint is the command for a part that no passage starts from; empty for anything else.
	PartHint(r connect.Resource) string
}
