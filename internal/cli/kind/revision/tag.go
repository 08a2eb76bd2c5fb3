package revision

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/passage"
	revisiontag "github.com/fairlead/fairlead/internal/revision/tag"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// TagKind is IstioRevisionTag.
type TagKind struct{}

func (*TagKind) GroupKinds() []schema.GroupKind {
	return []schema.GroupKind{v1.GroupVersion.WithKind(v1.IstioRevisionTagKind).GroupKind()}
}

func (*TagKind) Hints() map[string]string {
	return map[string]string{"plan": "the plan of an IstioRevisionTag follows from the Istio in its spec.targetRef: `fairlead plan istio NAME`"}
}

func (*TagKind) Status(ctx context.Context, reader client.Reader, r connect.Resource) (render.Status, error) {
	var tag v1.IstioRevisionTag
	if err := r.Get(ctx, reader, &tag); err != nil {
		return nil, err
	}
	users, err := usage.List(ctx, reader)
	if err != nil {
		return nil, err
	}
	target, err := resolveTarget(ctx, reader, tag.Spec.TargetRef)
	if err != nil {
		return nil, err
	}
	reported := tag.Status.ObservedGeneration == tag.Generation
	plan := planFromStatus(&tag, target)
	return newStatus(plan, tag.Status.Conditions, reported, users.TagReferences(r.Key.Name), time.Now()), nil
}

// resolveTarget is the revision that a tag should point to, or nothing as long as there is none.
func resolveTarget(ctx context.Context, reader client.Reader, ref v1.TargetReference) (string, error) {
	if ref.Kind != v1.IstioKind {
		return ref.Name, nil
	}
	var istio v1.Istio
	if err := reader.Get(ctx, client.ObjectKey{Name: ref.Name}, &istio); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get Istio %s: %w", ref.Name, err)
	}
	return istio.Status.ActiveRevisionName, nil
}

func planFromStatus(tag *v1.IstioRevisionTag, target string) passage.Plan {
	step := passage.Step{Action: revisiontag.ActionPoint, To: target}
	if tag.Status.IstioRevision != target {
		step.From = tag.Status.IstioRevision
	}
	reported := tag.Status.ObservedGeneration == tag.Generation
	plan := planFromConditions(v1.IstioRevisionTagKind, tag, step, tag.Status.Conditions, reported, v1.ConditionReconciled)
	if step := &plan.Steps[0]; step.State == passage.Done && step.From != "" {
		// The condition is about the revision that the tag pointed to before.
		step.State, step.Reason = passage.Running, notReported
	}
	return plan
}
