package adoption

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// Toll is what aborting a policy does.
type Toll struct {
	// Objects are let go of, in so many Clusters.
	Objects, Clusters int
	// Changed are those of them that their takeover changed, and that are put back.
	Changed int
}

// TollOf finds out what aborting a policy would do.
func TollOf(ctx context.Context, reader client.Reader, policy *Policy) (Toll, error) {
	all, err := indexed(ctx, reader, policy.Namespace)
	if err != nil {
		return Toll{}, err
	}
	taken := map[string]bool{}
	for _, b := range all {
		taken[b.path()] = claimOf(b) == policy.Key()
	}
	meant := map[string]bool{}
	for _, b := range all {
		meant[string(b.GetUID())] = taken[b.path()] || claimOf(b) == (Key{}) && needsOf(b, taken)
	}
	var works workv1alpha1.WorkList
	if err := reader.List(ctx, &works); err != nil {
		return Toll{}, fmt.Errorf("list Works: %w", err)
	}
	records := &corev1.SecretList{}
	if err := reader.List(ctx, records, client.MatchingLabels{LabelUndo: "true"}); err != nil {
		return Toll{}, fmt.Errorf("list what was there before: %w", err)
	}
	kept := map[client.ObjectKey]bool{}
	for i := range records.Items {
		kept[client.ObjectKeyFromObject(&records.Items[i])] = true
	}
	toll, clusters := Toll{}, map[string]bool{}
	for i := range works.Items {
		w := &works.Items[i]
		if !meant[w.Labels[LabelBinding]] || len(w.Status.ManifestStatuses) == 0 {
			continue
		}
		toll.Objects++
		clusters[w.Namespace] = true
		if kept[client.ObjectKey{Namespace: w.Namespace, Name: undoName(w)}] {
			toll.Changed++
		}
	}
	toll.Clusters = len(clusters)
	return toll, nil
}
