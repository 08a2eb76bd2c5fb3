package binding

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// recordFinished records on a new Work that its object has finished, by the status of the binding, which outlives the Work that
// somebody has deleted.
func recordFinished(work *workv1alpha1.Work, b *model.Binding, version, cluster string, m *unstructured.Unstructured) error {
	if !manifest.RunsOnce(m) || b.Status.TemplateVersion != version {
		return nil
	}
	for _, item := range b.Status.AggregatedStatus {
		hasFinished := item.Status != nil && manifest.HasFinished(m, item.Status.Raw)
		if item.ClusterName != cluster || !item.Applied && item.Reason != string(model.ReasonFinished) || !hasFinished && !manifest.RemovesItself(m) {
			continue
		}
		kind := m.GroupVersionKind()
		text, err := json.Marshal(workv1alpha1.ManifestStatus{
			Identifier: workv1alpha1.ResourceIdentifier{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: m.GetNamespace(), Name: m.GetName()},
			Status:     item.Status, Health: string(item.Health), WrittenManifest: manifest.Digest(manifest.ForMember(m).Object),
		})
		if err != nil {
			return fmt.Errorf("encode the status of %s: %w", model.ObjectOf(m), err)
		}
		metav1.SetMetaDataAnnotation(&work.ObjectMeta, model.AnnotationFinished, string(text))
	}
	return nil
}

// finishedBefore is the status of the object of a Work that is not reconciled yet, if it has finished for an earlier Work; nil
// otherwise. The binding keeps it, for this Work may be deleted as well.
func finishedBefore(work *workv1alpha1.Work) *workv1alpha1.ManifestStatus {
	if work == nil || len(work.Spec.Workload.Manifests) == 0 {
		return nil
	}
	before, m := model.FinishedBefore(work), &unstructured.Unstructured{}
	if before == nil || m.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw) != nil || before.WrittenManifest != manifest.Digest(manifest.ForMember(m).Object) {
		return nil
	}
	return before
}
