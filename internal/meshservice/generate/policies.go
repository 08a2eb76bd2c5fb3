package generate

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

// policyKind is a kind of policy.
type policyKind struct {
	object client.Object
	list   client.ObjectList
}

func policyKinds() []policyKind {
	return []policyKind{
		{&kumav1alpha1.MeshTimeout{}, &kumav1alpha1.MeshTimeoutList{}},
		{&kumav1alpha1.MeshRetry{}, &kumav1alpha1.MeshRetryList{}},
		{&kumav1alpha1.MeshCircuitBreaker{}, &kumav1alpha1.MeshCircuitBreakerList{}},
		{&kumav1alpha1.MeshLoadBalancingStrategy{}, &kumav1alpha1.MeshLoadBalancingStrategyList{}},
		{&kumav1alpha1.MeshHTTPRoute{}, &kumav1alpha1.MeshHTTPRouteList{}},
		{&kumav1alpha1.MeshTCPRoute{}, &kumav1alpha1.MeshTCPRouteList{}},
	}
}

// setupPolicies adds the controller that reports dangling references of policies.
func (r *reconciler) setupPolicies(mgr ctrl.Manager) error {
	changed := kube.EnqueueAfter(statusDebounce, meshOf)
	ours := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	b := newController(mgr, "policies", 1).
		Watches(&kumav1alpha1.Mesh{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, modeObserved))).
		Watches(&kumav1alpha1.MeshService{}, changed, ours).
		Watches(&kumav1alpha1.MeshMultiZoneService{}, changed, ours).
		Watches(&corev1.ConfigMap{}, changed)
	for _, kind := range policyKinds() {
		b = b.Watches(kind.object, changed, ours)
	}
	return r.complete(b, "policies", r.reconcilePolicies)
}

// reconcilePolicies reports the dangling references of the policies of a mesh.
func (r *reconciler) reconcilePolicies(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	mesh := request.Name
	policies, err := r.policiesOf(ctx, mesh)
	if err != nil || len(policies) == 0 {
		return reconcile.Result{}, err
	}
	destinations, known, err := r.destinationsOf(ctx, mesh)
	if err != nil || !known {
		return reconcile.Result{}, err
	}
	mode, _, err := r.modeOf(ctx, mesh)
	if err != nil {
		return reconcile.Result{}, err
	}
	findings := map[string][]policy.Finding{}
	for _, f := range policy.Dangling(policies, destinations) {
		key := f.Kind + " " + f.Policy
		findings[key] = append(findings[key], f)
	}
	var errs []error
	for _, p := range policies {
		errs = append(errs, r.applyPolicyStatus(ctx, p, resolvedCondition(findings[objectName(p)], mode)))
	}
	return reconcile.Result{}, errors.Join(errs...)
}
