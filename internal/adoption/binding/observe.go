package binding

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

func (b *reconciler) works(ctx context.Context, binding *model.Binding) (map[string]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := b.client.List(ctx, &list, client.MatchingFields{model.IndexBinding: string(binding.GetUID())}); err != nil {
		return nil, fmt.Errorf("find the Works of %s: %w", binding, err)
	}
	works := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		if cluster, ok := model.ClusterOf(list.Items[i].Namespace); ok {
			works[cluster] = &list.Items[i]
		}
	}
	return works, nil
}
