package adoption

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// FinalizerExecution keeps a Work until what it has made in its cluster is gone, or released.
const FinalizerExecution = "karmada.io/execution-controller"

// conflictLook is how often a conflict is looked at again, besides when anything on the hub changes.
const conflictLook = 20 * time.Second

// The reasons of the condition Applied of a Work.
const (
	ReasonApplied   passage.Code = "AppliedSuccessful"
	ReasonFailed    passage.Code = "AppliedFailed"
	ReasonSuspended passage.Code = "DispatchingSuspended"
)

// executor carries Works out in their clusters.
type executor struct {
	client  client.Client
	members *members
	hub     string
	now     func() time.Time
}

// Reconcile brings one Work to its cluster.
func (e *executor) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var work workv1alpha1.Work
	if err := e.client.Get(ctx, request.NamespacedName, &work); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster, ok := clusterOf(work.Namespace)
	if !ok {
		return ctrl.Result{}, nil
	}
	m := e.members.get(cluster)
	if m == nil {
		// When the cluster can be reached, all of its Works are looked at.
		return ctrl.Result{}, nil
	}
	if !work.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, e.release(ctx, m, &work)
	}
	status, again, err := e.execute(ctx, m, &work)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := e.write(ctx, &work, status); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// execute writes what has to be written, and gives the status that follows.
func (e *executor) execute(ctx context.Context, m *member, work *workv1alpha1.Work) (workv1alpha1.WorkStatus, time.Duration, error) {
	status := *work.Status.DeepCopy()
	if ptr.Deref(work.Spec.SuspendDispatching, false) {
		e.tell(work, &status, metav1.ConditionFalse, passage.Because(ReasonSuspended, "nothing is written to cluster %s while its policy suspends dispatching", m.name))
		return status, 0, nil
	}
	var statuses []workv1alpha1.ManifestStatus
	for i, raw := range work.Spec.Workload.Manifests {
		manifest := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &manifest.Object); err != nil {
			return status, 0, fmt.Errorf("read manifest %d of Work %s/%s: %w", i, work.Namespace, work.Name, err)
		}
		one, verdict, err := e.one(ctx, m, work, i, manifest)
		switch {
		case err != nil && !telling(err):
			return status, 0, err
		case err != nil:
			e.tell(work, &status, metav1.ConditionFalse, passage.Because(ReasonFailed, "%s %s in cluster %s: %v", manifest.GetKind(), nameOf(manifest), m.name, err))
			return status, conflictLook, nil
		case verdict.action == ActionLeave || verdict.action == ActionAwait:
			e.tell(work, &status, metav1.ConditionFalse, verdict.reason)
			return status, conflictLook, nil
		}
		statuses = append(statuses, *one)
	}
	status.ManifestStatuses = statuses
	e.tell(work, &status, metav1.ConditionTrue, passage.Because(ReasonApplied, "cluster %s runs it", m.name))
	return status, 0, nil
}

// one brings one object to the cluster, in at most one write.
func (e *executor) one(ctx context.Context, m *member, work *workv1alpha1.Work, i int, manifest *unstructured.Unstructured) (*workv1alpha1.ManifestStatus, verdict, error) {
	if err := m.follow(manifest.GroupVersionKind()); err != nil {
		return nil, verdict{}, err
	}
	live, err := m.find(ctx, manifest)
	if err != nil {
		return nil, verdict{}, err
	}
	before := recordOf(work, i)
	who := identity{e.hub, string(work.UID)}
	v, err := settle(m.name, manifest, live, who, before, false)
	if err != nil {
		return nil, v, err
	}
	switch v.action {
	case ActionLeave, ActionAwait:
		return nil, v, nil
	case ActionCreate:
		live = v.want
		if err := e.create(ctx, m, live); err != nil {
			return nil, v, err
		}
	case ActionTakeOver, ActionUpdate:
		live = v.want
		if err := m.client.Update(ctx, live, client.FieldOwner(FieldOwner)); err != nil {
			return nil, v, err
		}
	}
	if v.action != ActionNone {
		ctrl.LoggerFrom(ctx).Info("applied a step", "action", v.action, "cluster", m.name, "object", manifest.GetKind()+" "+nameOf(manifest), "reason", v.reason.String())
		if before.Manifest, err = digestOf(manifest.Object); err != nil {
			return nil, v, err
		}
		if before.Object, err = contentOf(live, retain(manifest, live, who.marks(), false), false); err != nil {
			return nil, v, err
		}
	}
	return statusOf(i, live, before), v, nil
}

// create makes an object, and the namespace that it is in if that is missing.
func (e *executor) create(ctx context.Context, m *member, object *unstructured.Unstructured) error {
	err := m.client.Create(ctx, object, client.FieldOwner(FieldOwner))
	if !apierrors.IsNotFound(err) || object.GetNamespace() == "" {
		return err
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(object.GetNamespace())
	if err := m.client.Create(ctx, namespace, client.FieldOwner(FieldOwner)); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create its namespace: %w", err)
	}
	return m.client.Create(ctx, object, client.FieldOwner(FieldOwner))
}

// recordOf is what was last written of a manifest.
func recordOf(work *workv1alpha1.Work, i int) Record {
	for _, s := range work.Status.ManifestStatuses {
		if s.Identifier.Ordinal == i {
			return Record{s.WrittenManifest, s.WrittenObject}
		}
	}
	return Record{}
}

func statusOf(i int, live *unstructured.Unstructured, written Record) *workv1alpha1.ManifestStatus {
	kind := live.GroupVersionKind()
	s := &workv1alpha1.ManifestStatus{
		Identifier: workv1alpha1.ResourceIdentifier{
			Ordinal: i, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: live.GetNamespace(), Name: live.GetName(),
		},
		Health: string(healthOf(live)), WrittenManifest: written.Manifest, WrittenObject: written.Object,
		ResourceVersion: live.GetResourceVersion(),
	}
	if said, found := live.Object["status"]; found {
		if text, err := json.Marshal(said); err == nil {
			s.Status = &runtime.RawExtension{Raw: text}
		}
	}
	return s
}

// release lets go of what a Work has made: it is deleted, or stays without the marks.
func (e *executor) release(ctx context.Context, m *member, work *workv1alpha1.Work) error {
	if !controllerutil.ContainsFinalizer(work, FinalizerExecution) {
		return nil
	}
	who := identity{e.hub, string(work.UID)}
	for i, raw := range work.Spec.Workload.Manifests {
		manifest := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &manifest.Object); err != nil {
			return fmt.Errorf("read manifest %d of Work %s/%s: %w", i, work.Namespace, work.Name, err)
		}
		live, err := m.find(ctx, manifest)
		if err != nil && !meta.IsNoMatchError(err) {
			return err
		}
		if live == nil || who.of(live) != ours {
			continue
		}
		if ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) {
			if err := e.unmark(ctx, m, live); err != nil {
				return err
			}
			continue
		}
		uid := live.GetUID()
		err = m.client.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	before := work.DeepCopy()
	controllerutil.RemoveFinalizer(work, FinalizerExecution)
	return client.IgnoreNotFound(e.client.Patch(ctx, work, client.MergeFrom(before), client.FieldOwner(FieldOwner)))
}

// unmark removes every mark of Fairlead from an object.
func (e *executor) unmark(ctx context.Context, m *member, live *unstructured.Unstructured) error {
	before := live.DeepCopy()
	live.SetLabels(joined(live.GetLabels(), []string{LabelManaged, LabelHub, LabelWork}))
	return client.IgnoreNotFound(m.client.Patch(ctx, live, client.MergeFrom(before), client.FieldOwner(FieldOwner)))
}

func (e *executor) tell(work *workv1alpha1.Work, status *workv1alpha1.WorkStatus, is metav1.ConditionStatus, reason passage.Reason) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha1.ConditionApplied, Status: is, Reason: string(reason.Code), Message: reason.Message,
		ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(e.now()),
	})
}

func (e *executor) write(ctx context.Context, work *workv1alpha1.Work, status workv1alpha1.WorkStatus) error {
	if equality.Semantic.DeepEqual(work.Status, status) {
		return nil
	}
	before := work.DeepCopy()
	work.Status = status
	err := e.client.Status().Patch(ctx, work, client.MergeFrom(before), client.FieldOwner(FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// telling holds for what people have to know of: it would be the same if it were tried again at once.
func telling(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsUnauthorized(err) || meta.IsNoMatchError(err)
}
