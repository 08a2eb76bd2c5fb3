package forecast

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// AbortImpact is what aborting a policy does.
type AbortImpact struct {
	// Objects are released, in so many Clusters.
	Objects, Clusters int
	// Changed are those that their takeover changed, and whose originals are restored.
	Changed int
}

// AbortImpactOf finds out what aborting a policy would do.
func AbortImpactOf(ctx context.Context, reader client.Reader, policy *policy.Policy) (AbortImpact, error) {
	all, err := model.ListBindings(ctx, reader, policy.Namespace)
	if err != nil {
		return AbortImpact{}, err
	}
	taken := map[string]bool{}
	for _, b := range all {
		taken[b.Path()] = model.ClaimOf(b) == policy.Key()
	}
	meant := map[string]bool{}
	for _, b := range all {
		meant[string(b.GetUID())] = taken[b.Path()] || model.ClaimOf(b) == (model.PolicyKey{}) && model.IsRequiredBy(b, taken)
	}
	var works workv1alpha1.WorkList
	if err := reader.List(ctx, &works); err != nil {
		return AbortImpact{}, fmt.Errorf("list Works: %w", err)
	}
	records := &corev1.SecretList{}
	if err := reader.List(ctx, records, client.MatchingLabels{model.LabelRestore: "true"}); err != nil {
		return AbortImpact{}, fmt.Errorf("list the originals: %w", err)
	}
	kept := map[client.ObjectKey]bool{}
	for i := range records.Items {
		kept[client.ObjectKeyFromObject(&records.Items[i])] = true
	}
	impact, clusters := AbortImpact{}, map[string]bool{}
	for i := range works.Items {
		w := &works.Items[i]
		if !meant[w.Labels[model.LabelBinding]] || len(w.Status.ManifestStatuses) == 0 {
			continue
		}
		impact.Objects++
		clusters[w.Namespace] = true
		if kept[client.ObjectKey{Namespace: w.Namespace, Name: model.OriginalName(w)}] {
			impact.Changed++
		}
	}
	impact.Clusters = len(clusters)
	return impact, nil
}
