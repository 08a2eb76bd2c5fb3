package binding

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
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
		if item.ClusterName != cluster || !item.Applied || !hasFinished && !manifest.RemovesItself(m) {
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

// refreshFinished reads the binding of a Job or Pod from the API server before a Work is created. The cache may have received that
// somebody has deleted the Work, and not yet that its object had finished: it would run again.
func (r *reconciler) refreshFinished(ctx context.Context, o *Observed) error {
	lacksWork := slices.ContainsFunc(model.Targets(o.Binding), func(target workv1alpha2.TargetCluster) bool { return o.Works[target.Name] == nil })
	if !manifest.RunsOnce(o.Template) || !lacksWork {
		return nil
	}
	live, err := model.GetBinding(ctx, r.reader, client.ObjectKeyFromObject(o.Binding.Object))
	if err != nil {
		return fmt.Errorf("get the status of binding %s: %w", o.Binding.Path(), err)
	}
	if live != nil && live.GetUID() == o.Binding.GetUID() {
		o.Binding = live
	}
	return nil
}
