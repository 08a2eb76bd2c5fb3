package kube

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead/fairlead/internal/passage"
)

// LogStep logs a step that was applied, always with the same keys: users search their logs for them.
func LogStep(ctx context.Context, name string, step passage.Step, more ...any) {
	cluster := step.Object.Cluster
	step.Object.Cluster = ""
	values := []any{
		"passage", name, "action", string(step.Action), "object", step.Object.String(), "from", step.From, "to", step.To, "reason", step.Reason.String(),
	}
	if cluster != "" {
		values = append(values, "cluster", cluster)
	}
	if step.Batch > 0 {
		values = append(values, "batch", step.Batch)
	}
	log.FromContext(ctx).Info("applied a step", append(values, more...)...)
}
