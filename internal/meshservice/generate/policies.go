package generate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
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

// statusOf is the status of a policy.
func statusOf(object client.Object) *kumav1alpha1.PolicyStatus {
	switch p := object.(type) {
	case *kumav1alpha1.MeshTimeout:
		return &p.Status
	case *kumav1alpha1.MeshRetry:
		return &p.Status
	case *kumav1alpha1.MeshCircuitBreaker:
		return &p.Status
	case *kumav1alpha1.MeshLoadBalancingStrategy:
		return &p.Status
	case *kumav1alpha1.MeshHTTPRoute:
		return &p.Status
	case *kumav1alpha1.MeshTCPRoute:
		return &p.Status
	}
	return &kumav1alpha1.PolicyStatus{}
}

// setupPolicies adds the controller that tells of policies that refer to nothing.
func (r *reconciler) setupPolicies(mgr ctrl.Manager) error {
	changed := enqueueOldAndNew(r.enqueueMesh)
	ours := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	b := ctrl.NewControllerManagedBy(mgr).Named("meshservice-policies").WithOptions(options(1)).
		Watches(&kumav1alpha1.Mesh{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&kumav1alpha1.MeshService{}, changed, ours).
		Watches(&kumav1alpha1.MeshMultiZoneService{}, changed, ours).
		WatchesRawSource(source.Kind(r.workloads, client.Object(&corev1.ConfigMap{}), changed))
	for _, kind := range policyKinds() {
		b = b.Watches(kind.object, changed, ours)
	}
	if err := b.Complete(requeueOnConflict{reconcile.Func(r.reconcilePolicies)}); err != nil {
		return fmt.Errorf("watch policies: %w", err)
	}
	return nil
}

// reconcilePolicies tells of each policy of a mesh whether it refers to something.
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
	var resolve []policy.Policy
	for _, p := range policies {
		if p, ok := p.(policy.Policy); ok {
			resolve = append(resolve, p)
		}
	}
	mode, _, err := r.modeOf(ctx, mesh)
	if err != nil {
		return reconcile.Result{}, err
	}
	findings := map[string][]policy.Finding{}
	for _, f := range policy.Dangling(resolve, destinations) {
		key := f.Kind + " " + f.Policy
		findings[key] = append(findings[key], f)
	}
	var errs []error
	for _, p := range policies {
		kind, err := r.client.GroupVersionKindFor(p)
		if err != nil {
			return reconcile.Result{}, err
		}
		resolved := resolvedCondition(findings[kind.Kind+" "+client.ObjectKeyFromObject(p).String()], mode)
		errs = append(errs, r.patchPolicyStatus(ctx, p, resolved))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

func (r *reconciler) policiesOf(ctx context.Context, mesh string) ([]client.Object, error) {
	var all []client.Object
	for _, kind := range policyKinds() {
		if err := r.client.List(ctx, kind.list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		err := meta.EachListItem(kind.list, func(item runtime.Object) error {
			if p, ok := item.(client.Object); ok && desired.MeshOf(p) == mesh {
				all = append(all, p)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// destinationsOf are all that policies of a mesh can refer to. Until its tags are recorded, they are not known.
func (r *reconciler) destinationsOf(ctx context.Context, mesh string) (all []model.Destination, known bool, err error) {
	var record corev1.ConfigMap
	err = r.workloads.Get(ctx, client.ObjectKey{Namespace: r.SystemNamespace, Name: TagsName(mesh)}, &record, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, false, client.IgnoreNotFound(err)
	}
	for service := range record.Data {
		all = append(all, model.Destination{Target: model.Target{Key: model.TagKey(service)}})
	}
	of := []client.ListOption{client.MatchingFields{byMesh: mesh}, client.UnsafeDisableDeepCopy}
	var services kumav1alpha1.MeshServiceList
	if err := r.client.List(ctx, &services, of...); err != nil {
		return nil, false, err
	}
	for i := range services.Items {
		for _, port := range services.Items[i].Spec.Ports {
			one := r.destination(model.MeshService, &services.Items[i], port)
			all = append(all, one)
			if headless := desired.HeadlessService(&services.Items[i], r.ZoneInfo); headless != "" {
				all = append(all, one.ForHeadless(headless))
			}
		}
	}
	var multiZone kumav1alpha1.MeshMultiZoneServiceList
	if err := r.client.List(ctx, &multiZone, of...); err != nil {
		return nil, false, err
	}
	for i := range multiZone.Items {
		for _, port := range multiZone.Items[i].Spec.Ports {
			all = append(all, r.destination(model.MeshMultiZoneService, &multiZone.Items[i], kumav1alpha1.Port{Port: port.Port, Name: port.Name}))
		}
	}
	return all, true, nil
}

func (r *reconciler) destination(kind model.Kind, object client.Object, port kumav1alpha1.Port) model.Destination {
	id := desired.IdentityOf(object, r.ZoneInfo)
	if kind == model.MeshMultiZoneService {
		id.Zone = ""
	}
	return model.Destination{
		Target: model.Target{
			Key:  model.Key{Kind: kind, Name: id.Name, Namespace: id.Namespace, Zone: id.Zone, Mesh: desired.MeshOf(object), Port: uint32(port.Port)},
			Name: object.GetName(), Namespace: object.GetNamespace(), Labels: desired.LabelsOf(object, r.ZoneInfo),
		},
		Section: port.SectionName(), Local: id.Local,
	}
}

// resolvedCondition says whether a policy refers to something. In a mesh that is Disabled, what is for MeshServices waits for them.
func resolvedCondition(findings []policy.Finding, mode kumav1alpha1.Mode) metav1.Condition {
	var wrong, waiting []string
	for _, f := range findings {
		if mode == kumav1alpha1.ModeDisabled && f.Generated {
			waiting = append(waiting, f.Field)
		} else {
			wrong = append(wrong, fmt.Sprintf("%s: %s; %s", f.Field, f.Problem, f.Remedy))
		}
	}
	c := metav1.Condition{Type: kumav1alpha1.ConditionResolved, Status: metav1.ConditionTrue, Reason: kumav1alpha1.ReasonResolved}
	switch {
	case len(wrong) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, kumav1alpha1.ReasonRefersToNothing, truncate(strings.Join(wrong, "\n"))
	case len(waiting) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, kumav1alpha1.ReasonDisabled
		c.Message = truncate("MeshServices are not generated while the mesh is Disabled: " + strings.Join(waiting, ", "))
	default:
		c.Message = "all references are resolved"
	}
	return c
}

// patchPolicyStatus writes whether a policy refers to something.
func (r *reconciler) patchPolicyStatus(ctx context.Context, there client.Object, resolved metav1.Condition) error {
	now := there.DeepCopyObject().(client.Object)
	status := statusOf(now)
	status.ObservedGeneration = there.GetGeneration()
	resolved.ObservedGeneration = there.GetGeneration()
	meta.SetStatusCondition(&status.Conditions, resolved)
	if desired.Equal(there, now) {
		return nil
	}
	err := r.client.Status().Patch(ctx, now, optimisticLock(there), client.FieldOwner(FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of %T %s: %w", now, client.ObjectKeyFromObject(now), err)
	}
	return nil
}

// truncate is as much of a message as a condition should hold.
func truncate(message string) string {
	const most = 2000
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + "..."
}
