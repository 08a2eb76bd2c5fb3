// Package adoption is the passage that takes existing objects of clusters under the management of a hub: a policy selects templates
// of the hub and the clusters that they go to, and objects that exist there are taken over without a restart if conflictResolution
// is Overwrite.
package adoption

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/binding"
	"github.com/fairlead/fairlead/internal/adoption/leftover"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/adoption/template"
	"github.com/fairlead/fairlead/internal/adoption/work"
	"github.com/fairlead/fairlead/internal/kube"
)

// Caches are the kinds that the passage reads from the manager's cache.
func Caches() []client.Object {
	return []client.Object{
		&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{}, &workv1alpha2.ResourceBinding{},
		&workv1alpha2.ClusterResourceBinding{}, &workv1alpha1.Work{}, &clusterv1alpha1.Cluster{},
	}
}

// Setup adds the passage to the manager.
func Setup(mgr ctrl.Manager, limits member.Limits) error {
	ctx := context.Background()
	hub, err := model.HubID(ctx, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	if err := setupIndexes(ctx, mgr); err != nil {
		return err
	}
	works, bindings := kube.NewEnqueuer(), kube.NewEnqueuer()
	enqueueWorks := func(cluster string, options ...client.ListOption) {
		for _, request := range work.WorksOf(ctx, mgr.GetCache(), cluster, options...) {
			works.Enqueue(request.NamespacedName)
		}
	}
	m := member.NewClients(mgr.GetAPIReader(), limits)
	m.WrapTransport = mgr.GetConfig().WrapTransport
	m.OnEvent = func(cluster string, labels map[string]string) {
		if labels[model.LabelHub] == hub {
			enqueueWorks(cluster, client.MatchingFields{model.IndexObject: labels[model.LabelWork]})
		}
	}
	templates, err := template.Setup(mgr, bindings.Enqueue)
	if err != nil {
		return err
	}
	if err := policy.Setup(mgr, templates.Kinds.ErrorFor); err != nil {
		return err
	}
	if err := binding.Setup(mgr, bindings, templates.Version); err != nil {
		return err
	}
	if err := work.Setup(mgr, works, m, hub); err != nil {
		return err
	}
	connected := kube.NewEnqueuer()
	if err := leftover.Setup(mgr, connected, m, hub); err != nil {
		return err
	}
	return member.Setup(mgr, m, func(cluster string) {
		enqueueWorks(cluster)
		connected.Enqueue(client.ObjectKey{Name: cluster})
	}, works.Enqueue, func(ctx context.Context) (bool, error) { return policy.DividesByRoom(ctx, mgr.GetClient()) })
}

func setupIndexes(ctx context.Context, mgr ctrl.Manager) error {
	for index, of := range map[string]client.IndexerFunc{
		model.IndexBinding: model.BindingIndexValues,
		model.IndexObject:  func(o client.Object) []string { return []string{o.GetLabels()[model.LabelWork]} },
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, index, of); err != nil {
			return fmt.Errorf("index Works: %w", err)
		}
	}
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		for index, of := range map[string]client.IndexerFunc{
			model.IndexPolicy: model.PolicyIndexValues, model.IndexRequiredBy: model.RequiredByIndexValues, model.IndexWaiting: model.WaitingIndexValues,
			model.IndexTemplate: model.TemplateIndexValues,
		} {
			if err := mgr.GetFieldIndexer().IndexField(ctx, kind, index, of); err != nil {
				return fmt.Errorf("index bindings: %w", err)
			}
		}
	}
	return nil
}
