// Package revision is what commands know about an IstioRevision.
package revision

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Kind is IstioRevision.
type Kind struct{}

func (*Kind) GroupKinds() []schema.GroupKind {
	return []schema.GroupKind{v1.GroupVersion.WithKind(v1.IstioRevisionKind).GroupKind()}
}

// PlanHint names the Istio.
func (*Kind) PlanHint() string {
	return "the plan of an IstioRevision follows from the Istio that owns it: `fairlead plan istio NAME`"
}

func (*Kind) Status(ctx context.Context, c *connect.Cluster, r connect.Resource) (render.Status, error) {
	var revision v1.IstioRevision
	if err := c.Client.Get(ctx, r.Key, &revision); err != nil {
		return nil, fmt.Errorf("get IstioRevision %s: %w", r.Key.Name, err)
	}
	users, err := usage.List(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	conditions, reported := revision.Status.Conditions, revision.Status.ObservedGeneration == revision.Generation
	plan := FromConditions(v1.IstioRevisionKind, &revision, passage.Step{Action: installer.ActionInstall, To: revision.Spec.Version},
		conditions, v1.ConditionReconciled, v1.ConditionReady)
	return NewStatus(plan, conditions, reported, users.References(r.Key.Name), time.Now()), nil
}
