package generate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/meshstatus"
)

// setupMeshes adds the controller that reports on the generation in a mesh.
func (r *reconciler) setupMeshes(mgr ctrl.Manager) error {
	b := newController(mgr, "meshes", 1).
		For(&kumav1alpha1.Mesh{}).
		Watches(&kumav1alpha1.MeshService{}, kube.EnqueueAfter(statusDebounce, meshOf), builder.WithPredicates(predicate.Or[client.Object](specChanged, firstObserved)))
	if r.IsUniversal() {
		b = b.Watches(&kumav1alpha1.Dataplane{}, kube.EnqueueAfter(statusDebounce, meshOf), builder.WithPredicates(specChanged))
	} else {
		b = b.Watches(&corev1.Service{}, kube.EnqueueAfter(statusDebounce, r.meshOfService)).
			WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.allMeshes), builder.WithPredicates(metadataChanged))
	}
	return r.complete(b, "Meshes", r.reconcileMesh)
}

// reconcileMesh reports the mode in force and the generated MeshServices.
func (r *reconciler) reconcileMesh(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var mesh kumav1alpha1.Mesh
	if err := r.client.Get(ctx, request.NamespacedName, &mesh); err != nil || mesh.DeletionTimestamp != nil {
		delete(r.stalls, request.Name)
		r.events.Forget(isAbout(kumav1alpha1.MeshKind, request.NamespacedName))
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var services kumav1alpha1.MeshServiceList
	if err := r.client.List(ctx, &services, client.MatchingFields{byMesh: mesh.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, err
	}
	in := generationStatus{total: len(services.Items), takenOver: map[string]bool{}}
	for i := range services.Items {
		switch one := &services.Items[i]; {
		case !desired.IsGenerated(one, r.ZoneInfo):
		case desired.IsApplied(one):
			in.generated++
		default:
			in.takenOver[client.ObjectKeyFromObject(one).String()] = true
		}
	}
	if mesh.Mode() != kumav1alpha1.ModeDisabled {
		compare := r.compareServices
		if r.IsUniversal() {
			compare = r.compareDataplanes
		}
		if err := compare(ctx, mesh.Name, &in); err != nil {
			return reconcile.Result{}, err
		}
	}
	var err error
	if in.stranded, err = r.strandedConsumers(ctx, &mesh); err != nil {
		return reconcile.Result{}, err
	}
	stalled, again := r.stalls.stalled(mesh.Name, len(in.pending), r.now())
	condition, mode := in.condition(mesh.Mode()), in.nextMode(&mesh, stalled)
	r.warnOnce(&mesh, kumav1alpha1.ReasonUnmanaged, "generate", in.blockedText())
	if mode != mesh.Mode() {
		condition.Message += fmt.Sprintf("; until then mode %s is in force", mode)
	}
	if len(in.stranded) > 0 {
		again = strandedRequeueDelay
	}
	_, err = meshstatus.Apply(ctx, r.client, &mesh, meshstatus.Generation, condition, func(status *kumav1alpha1.MeshStatus) {
		status.ObservedGeneration, status.Mode = mesh.Generation, mode
		status.MeshServices = &kumav1alpha1.MeshServiceCount{Total: int32(len(services.Items))}
	})
	return reconcile.Result{RequeueAfter: again}, client.IgnoreNotFound(err)
}

// compareServices compares the MeshServices of Services with the existing ones.
func (r *reconciler) compareServices(ctx context.Context, mesh string, in *generationStatus) error {
	services, err := r.servicesIn(ctx, mesh)
	if err != nil {
		return err
	}
	for _, service := range services {
		want, err := r.desiredMeshServices(ctx, service)
		if err != nil {
			return err
		}
		for _, one := range want {
			there := &kumav1alpha1.MeshService{}
			if err := r.client.Get(ctx, client.ObjectKeyFromObject(one), there, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
				there = nil
			} else if err != nil {
				return err
			}
			in.compare(one, there, r.ZoneInfo)
		}
	}
	return nil
}

// compareDataplanes compares the MeshServices of Dataplanes with the existing ones.
func (r *reconciler) compareDataplanes(ctx context.Context, mesh string, in *generationStatus) error {
	served, err := r.localTags(ctx, mesh)
	if err != nil {
		return err
	}
	for service := range sets.New(served...) {
		if !desired.IsMeshServiceName(service) {
			in.nameless = append(in.nameless, service)
			continue
		}
		there, name, free, err := r.universalName(ctx, service, mesh)
		switch {
		case err != nil:
			return err
		case !free:
			in.blocked = append(in.blocked, service)
		default:
			in.compare(desired.UniversalService(name, service, mesh, nil, r.ZoneInfo), there, r.ZoneInfo)
		}
	}
	return nil
}

// generationStatus compares the MeshServices of a mesh with the desired ones: pending ones are not generated yet, blocked
// ones exist unmanaged or are kept by others and are left out, nameless ones have no valid name. Stranded are the consumers that
// mode Exclusive would leave with nothing. TakenOver were generated by another control plane, and are not desired.
type generationStatus struct {
	total, generated                     int
	pending, blocked, nameless, stranded []string
	takenOver                            map[string]bool
}

// compare compares a desired MeshService with the existing one. Without a status it has no VIPs yet, so it is pending.
func (c *generationStatus) compare(want, there *kumav1alpha1.MeshService, where desired.ZoneInfo) {
	name := want.Namespace + "/" + want.Name
	delete(c.takenOver, name)
	switch {
	case there == nil:
		c.pending = append(c.pending, name)
	case !desired.IsGenerated(there, where) || !sameOwner(there, want) || isKeptByOthers(there):
		c.blocked = append(c.blocked, name)
	case there.DeletionTimestamp != nil || desired.MeshOf(there) != desired.MeshOf(want) || there.Status.ObservedGeneration == 0:
		c.pending = append(c.pending, name)
	}
}

// isKeptByOthers says whether a deleted MeshService stays, because of a finalizer that is not one of Kubernetes.
func isKeptByOthers(service *kumav1alpha1.MeshService) bool {
	return service.DeletionTimestamp != nil && slices.ContainsFunc(service.Finalizers, func(finalizer string) bool {
		return finalizer != metav1.FinalizerDeleteDependents && finalizer != metav1.FinalizerOrphanDependents
	})
}

// blockedText names the MeshServices that are left out; it is empty if there are none.
func (c *generationStatus) blockedText() string {
	if len(c.blocked) == 0 {
		return ""
	}
	slices.Sort(c.blocked)
	return fmt.Sprintf("%s not managed by Fairlead and left out: %s; delete those that Fairlead should generate",
		countText(len(c.blocked), "MeshService"), namesText(c.blocked))
}

func (c *generationStatus) namelessText() string {
	return fmt.Sprintf("%s of kuma.io/service not valid as a MeshService name: %s; use at most 63 lower-case letters, digits and '-'",
		countText(len(c.nameless), "value"), namesText(c.nameless))
}

func (c *generationStatus) condition(mode kumav1alpha1.Mode) metav1.Condition {
	condition := metav1.Condition{Type: kumav1alpha1.ConditionGenerated, Status: metav1.ConditionFalse}
	for _, names := range [][]string{c.pending, c.nameless} {
		slices.Sort(names)
	}
	switch {
	case mode == kumav1alpha1.ModeDisabled && c.generated > 0:
		condition.Reason = kumav1alpha1.ReasonDisabled
		condition.Message = fmt.Sprintf("meshServices is Disabled: %s to delete", countText(c.generated, "generated MeshService"))
	case mode == kumav1alpha1.ModeDisabled:
		condition.Reason, condition.Message = kumav1alpha1.ReasonDisabled, "meshServices is Disabled: no MeshService is generated"
	case len(c.pending) > 0:
		condition.Reason = kumav1alpha1.ReasonGenerating
		condition.Message = fmt.Sprintf("%s not generated yet: %s", countText(len(c.pending), "MeshService"), namesText(c.pending))
		if len(c.nameless) > 0 {
			condition.Message += "; " + c.namelessText()
		}
	case len(c.nameless) > 0:
		condition.Reason, condition.Message = kumav1alpha1.ReasonInvalidName, c.namelessText()
	case len(c.stranded) > 0:
		condition.Reason = kumav1alpha1.ReasonConsumersStranded
		condition.Message = fmt.Sprintf("%s would reach nothing in mode %s: %s; %s",
			countText(len(c.stranded), "consumer"), kumav1alpha1.ModeExclusive, namesText(c.stranded), desired.StrandedRemedy)
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, kumav1alpha1.ReasonGenerated
		condition.Message = fmt.Sprintf("%s, %d of them generated", countText(c.total, "MeshService"), c.generated)
		if len(c.blocked) > 0 {
			condition.Reason = kumav1alpha1.ReasonUnmanaged
		}
	}
	if text := c.blockedText(); text != "" && mode != kumav1alpha1.ModeDisabled {
		condition.Message += "; " + text
	}
	if len(c.takenOver) > 0 {
		why, remedy := "because Fairlead does not generate the same", "; delete those without callers"
		if mode == kumav1alpha1.ModeDisabled {
			why, remedy = "because meshServices is Disabled", ""
		}
		condition.Message += fmt.Sprintf("; %s taken over from another control plane and left unchanged, %s: %s%s",
			countText(len(c.takenOver), "MeshService"), why, namesText(slices.Sorted(maps.Keys(c.takenOver))), remedy)
	}
	return condition
}

// nextMode is the mode for the status, from which Mesh.ModeInForce decides what proxies get. A mesh leaves Disabled when all
// MeshServices are generated or generation has stalled, so that proxies change once. Exclusive starts when nothing is
// missing and nobody is stranded, since it removes the tags; it is not left for a new Service, which would bring all tags back.
// MeshServices of a mesh that was Disabled in between and lost some come back by way of Disabled: see generatedMode.
// Blocked ones do not count: anybody who may write MeshServices in one namespace could hold back the whole mesh.
func (c *generationStatus) nextMode(mesh *kumav1alpha1.Mesh, stalled bool) kumav1alpha1.Mode {
	mode, was := mesh.Mode(), mesh.Status.Mode
	if mode != kumav1alpha1.ModeDisabled && was == kumav1alpha1.ModeDisabled && len(c.pending) > 0 && !stalled {
		return kumav1alpha1.ModeDisabled
	}
	if mode != kumav1alpha1.ModeExclusive || was == mode || len(c.pending)+len(c.nameless)+len(c.stranded) == 0 {
		return mode
	}
	return kumav1alpha1.ModeEverywhere
}

// stallTimeout is how long a mesh that leaves Disabled waits for the next MeshService.
const stallTimeout = 10 * time.Second

// stallDetector tracks, by mesh, how many MeshServices are missing and since when.
type stallDetector map[string]stall

type stall struct {
	lacking int
	since   time.Time
}

// stalled says whether the number of missing MeshServices has not changed for stallTimeout, and when to look again.
func (w stallDetector) stalled(mesh string, lacking int, now time.Time) (stalled bool, again time.Duration) {
	if lacking == 0 {
		delete(w, mesh)
		return false, 0
	}
	if w[mesh].lacking != lacking {
		w[mesh] = stall{lacking, now}
	}
	left := stallTimeout - now.Sub(w[mesh].since)
	return left <= 0, max(left, 0)
}

// sameOwner says whether two MeshServices have the same owner, or in universal the same service and mesh.
func sameOwner(a, b *kumav1alpha1.MeshService) bool {
	one, other := metav1.GetControllerOf(a), metav1.GetControllerOf(b)
	if one == nil || other == nil {
		return one == other && desired.MeshOf(a) == desired.MeshOf(b) &&
			a.Labels[kumav1alpha1.LabelDisplayName] == b.Labels[kumav1alpha1.LabelDisplayName]
	}
	return one.Kind == other.Kind && one.Name == other.Name
}
