package forecast

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// AbortImpact is what aborting a policy does.
type AbortImpact struct {
	// Restored are the objects that their takeover has changed, and Released all others. Both are ordered by cluster, kind and name.
	Restored, Released []passage.Object
}

// Objects are how many objects the abort releases, restored ones included.
func (i AbortImpact) Objects() int { return len(i.Restored) + len(i.Released) }

// Clusters are how many clusters these objects are in.
func (i AbortImpact) Clusters() int {
	clusters := map[string]bool{}
	for _, o := range slices.Concat(i.Restored, i.Released) {
		clusters[o.Cluster] = true
	}
	return len(clusters)
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
	bindings := map[string]*model.Binding{}
	for _, b := range all {
		bindings[string(b.GetUID())] = b
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
	var impact AbortImpact
	for i := range works.Items {
		w := &works.Items[i]
		b := bindings[w.Labels[model.LabelBinding]]
		cluster, _ := model.ClusterOf(w.Namespace)
		if b == nil || !isReleased(b, cluster, taken) || len(w.Status.ManifestStatuses) == 0 {
			continue
		}
		object := model.TemplateOfBinding(b).Object()
		object.Cluster = cluster
		if kept[client.ObjectKey{Namespace: w.Namespace, Name: model.OriginalName(w)}] {
			impact.Restored = append(impact.Restored, object)
		} else {
			impact.Released = append(impact.Released, object)
		}
	}
	slices.SortFunc(impact.Restored, compareObjects)
	slices.SortFunc(impact.Released, compareObjects)
	return impact, nil
}

// isReleased tells whether an abort releases the object of a binding in a cluster: the policy takes the template, or no other
// policy places it there and no other resource that goes there requires it.
func isReleased(b *model.Binding, cluster string, taken map[string]bool) bool {
	if taken[b.Path()] {
		return true
	}
	stays := slices.ContainsFunc(b.Spec.RequiredBy, func(by workv1alpha2.BindingSnapshot) bool {
		goesThere := model.HasCluster(by.Clusters, cluster)
		return goesThere && !taken[strings.TrimPrefix(by.Namespace+"/"+by.Name, "/")]
	})
	placed := model.ClaimOf(b) != (model.PolicyKey{}) && model.HasCluster(b.Spec.Clusters, cluster)
	return !stays && !placed && model.IsRequiredBy(b, taken)
}
