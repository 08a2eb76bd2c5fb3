package workload

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// objectPatch is one write, conditional on the resource version. The object receives the response.
type objectPatch struct {
	object client.Object
	body   map[string]any
}

// relabelPatch sets the label of a namespace to the target.
func relabelPatch(seen inventory.Namespace, step passage.Step) objectPatch {
	labels := map[string]any{v1.LabelRevision: step.To}
	if _, found := seen.Labels[v1.LabelInjection]; found {
		labels[v1.LabelInjection] = nil
	}
	ns := usage.MetadataOf(kindNamespace)
	ns.Name = step.Object.Name
	return objectPatch{ns, map[string]any{"metadata": map[string]any{
		"uid": seen.UID, "resourceVersion": seen.ResourceVersion, "labels": labels,
	}}}
}

// movePatch restarts a workload on the target, unless its rollout leads there already, and marks it.
func movePatch(o Observed, seen *inventory.Workload, step passage.Step, run, now time.Time) objectPatch {
	generation := seen.Generation + 1
	if step.Action == ActionContinue && seen.Kind != kindDeployment {
		// Only of a Deployment is a change of annotations a new generation.
		generation = seen.Generation
	}
	c := markPatch(seen, Mark{
		UID: seen.UID, Retry: o.retryRequest(), Istio: o.Istio.Name, Target: step.To, From: step.From, Action: step.Action,
		Run: run, Batch: step.Batch, Started: now, Generation: generation,
	})
	template := map[string]any{}
	switch step.Action {
	case ActionContinue:
		return c
	case ActionRelabel:
		template["labels"] = map[string]any{v1.LabelRevision: step.To}
	default:
		template["annotations"] = map[string]any{v1.AnnotationRestartedAt: now.UTC().Format(time.RFC3339)}
	}
	c.body["spec"] = map[string]any{"template": map[string]any{"metadata": template}}
	return c
}

// markPatch changes only the mark.
func markPatch(seen *inventory.Workload, mark Mark) objectPatch {
	return objectPatch{
		seen.NewObject(),
		map[string]any{"metadata": map[string]any{
			"uid": seen.UID, "resourceVersion": seen.ResourceVersion,
			"annotations": map[string]any{v1.AnnotationMigration: mark.String()},
		}},
	}
}
