package registrar

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate"
)

// setupMeshes adds the controller that tells what is generated in a mesh.
func (r *registrar) setupMeshes(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("meshservice-meshes").WithOptions(options(1)).
		For(&kumav1alpha1.Mesh{}).
		Watches(&kumav1alpha1.MeshService{}, versions(r.meshLater), builder.WithPredicates(specChanged))
	if r.IsUniversal() {
		b = b.Watches(&kumav1alpha1.Dataplane{}, versions(r.meshLater), builder.WithPredicates(specChanged))
	}
	if err := b.Complete(calm{reconcile.Func(r.reconcileMesh)}); err != nil {
		return fmt.Errorf("watch Meshes: %w", err)
	}
	return nil
}

// reconcileMesh tells which mode is in force, and what is generated.
func (r *registrar) reconcileMesh(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var mesh kumav1alpha1.Mesh
	if err := r.client.Get(ctx, request.NamespacedName, &mesh); err != nil || mesh.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var services kumav1alpha1.MeshServiceList
	if err := r.client.List(ctx, &services, client.MatchingFields{byMesh: mesh.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, err
	}
	generated := 0
	for i := range services.Items {
		if generate.Generated(&services.Items[i], r.Where) {
			generated++
		}
	}
	in := census{total: len(services.Items), generated: generated}
	if mesh.Mode() != kumav1alpha1.ModeDisabled {
		var err error
		if in.blocked, in.nameless, err = r.troubles(ctx, mesh.Name, services.Items); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, r.sayOfMesh(ctx, &mesh, in.condition(mesh.Mode()), func(status *kumav1alpha1.MeshStatus) {
		status.ObservedGeneration, status.Mode = mesh.Generation, mesh.Mode()
		status.MeshServices = &kumav1alpha1.MeshServiceCount{Total: int32(len(services.Items))}
	})
}

// troubles are the Services whose MeshService somebody else has made, and the values of kuma.io/service that are no names.
func (r *registrar) troubles(ctx context.Context, mesh string, services []kumav1alpha1.MeshService) (blocked, nameless []string, err error) {
	if r.IsUniversal() {
		var dataplanes kumav1alpha1.DataplaneList
		if err := r.cache.List(ctx, &dataplanes, client.MatchingFields{byMesh: mesh}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, err
		}
		for i := range dataplanes.Items {
			for _, service := range generate.ServicesOf(&dataplanes.Items[i]) {
				if !generate.IsName(service) {
					nameless = append(nameless, service)
				}
			}
		}
		slices.Sort(nameless)
		return nil, slices.Compact(nameless), nil
	}
	for i := range services {
		one := &services[i]
		if generate.Generated(one, r.Where) {
			continue
		}
		var service corev1.Service
		err := r.cache.Get(ctx, client.ObjectKeyFromObject(one), &service, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, nil, err
		}
		namespace, err2 := r.namespace(ctx, one.Namespace)
		if err2 != nil {
			return nil, nil, err2
		}
		if err == nil && generate.InMesh(&service, namespace) && !generate.Headless(&service) {
			blocked = append(blocked, one.Namespace+"/"+one.Name)
		}
	}
	slices.Sort(blocked)
	return blocked, nil, nil
}

// census is what MeshServices there are in a mesh.
type census struct {
	total, generated  int
	blocked, nameless []string
}

func (c census) condition(mode kumav1alpha1.Mode) metav1.Condition {
	condition := metav1.Condition{Type: kumav1alpha1.ConditionGenerated, Status: metav1.ConditionFalse}
	switch {
	case mode == kumav1alpha1.ModeDisabled && c.generated > 0:
		condition.Reason = kumav1alpha1.ReasonDisabled
		condition.Message = fmt.Sprintf("meshServices is Disabled: %s to be removed", count(c.generated, "generated MeshService"))
	case mode == kumav1alpha1.ModeDisabled:
		condition.Reason, condition.Message = kumav1alpha1.ReasonDisabled, "meshServices is Disabled: no MeshService is generated"
	case len(c.blocked) > 0:
		condition.Reason = kumav1alpha1.ReasonUnmanaged
		condition.Message = fmt.Sprintf("%s that Fairlead did not make and leaves alone: %s; delete what should be generated",
			count(len(c.blocked), "MeshService"), some(c.blocked))
	case len(c.nameless) > 0:
		condition.Reason = ReasonNoName
		condition.Message = fmt.Sprintf("%s of kuma.io/service can be no name of a MeshService: %s; use at most 63 lower-case letters, digits and '-'",
			count(len(c.nameless), "value"), some(c.nameless))
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, kumav1alpha1.ReasonGenerated
		condition.Message = fmt.Sprintf("%s, %d of them generated", count(c.total, "MeshService"), c.generated)
	}
	return condition
}

// ReasonNoName is the reason of Generated where a value of kuma.io/service can be no name.
const ReasonNoName = "NoName"

// sayOfMesh writes what there is to say of a Mesh, if it differs from what is there. Others write in the same status: what
// is written carries the version that was looked at.
func (r *registrar) sayOfMesh(ctx context.Context, mesh *kumav1alpha1.Mesh, condition metav1.Condition, more func(*kumav1alpha1.MeshStatus)) error {
	now := mesh.DeepCopy()
	condition.ObservedGeneration = mesh.Generation
	meta.SetStatusCondition(&now.Status.Conditions, condition)
	more(&now.Status)
	if generate.Same(mesh, now) {
		return nil
	}
	patch := client.MergeFromWithOptions(mesh, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, now, patch, client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Mesh %s: %w", mesh.Name, err)
	}
	return nil
}
