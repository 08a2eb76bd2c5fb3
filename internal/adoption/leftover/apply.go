package leftover

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// apply removes the labels of a leftover or deletes it, if it is still the one that was observed.
func apply(ctx context.Context, m *member.Client, object *metav1.PartialObjectMetadata, action passage.Action, why passage.Reason) error {
	var err error
	if action == model.ActionDelete {
		uid, version := object.GetUID(), object.GetResourceVersion()
		err = m.API.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid, ResourceVersion: &version})
	} else {
		before := object.DeepCopy()
		object.SetLabels(model.MergeKeys(object.GetLabels(), model.OwnershipLabels))
		err = m.API.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(model.FieldOwner))
	}
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	member.Writes.WithLabelValues(m.Name, string(action)).Inc()
	of := model.TemplateOf(object).Object()
	of.Cluster = m.Name
	kube.LogStep(ctx, model.Passage, passage.Step{Object: of, Action: action, Reason: why})
	return nil
}
