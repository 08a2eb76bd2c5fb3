package work

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// applyWork writes what has to be written, and gives the status that follows.
func (e *reconciler) applyWork(ctx context.Context, m *member.Client, work *workv1alpha1.Work) (workv1alpha1.WorkStatus, time.Duration, error) {
	status := *work.Status.DeepCopy()
	if ptr.Deref(work.Spec.SuspendDispatching, false) {
		e.setCondition(work, &status, metav1.ConditionFalse, passage.Because(model.ReasonSuspended, "nothing is written to cluster %s while its policy suspends dispatching", m.Name))
		return status, 0, nil
	}
	var statuses []workv1alpha1.ManifestStatus
	for i, raw := range work.Spec.Workload.Manifests {
		manifest := &unstructured.Unstructured{}
		if err := manifest.UnmarshalJSON(raw.Raw); err != nil {
			return status, 0, fmt.Errorf("read manifest %d of Work %s/%s: %w", i, work.Namespace, work.Name, err)
		}
		one, verdict, err := e.applyManifest(ctx, m, work, i, manifest)
		switch {
		case err != nil && !member.IsUserError(err):
			return status, 0, err
		case err != nil:
			e.setCondition(work, &status, metav1.ConditionFalse, member.RefusedReason(m.Name, manifest, err))
			return status, RecheckInterval, nil
		case verdict.Action == model.ActionLeave || verdict.Action == model.ActionAwait:
			e.setCondition(work, &status, metav1.ConditionFalse, verdict.Reason)
			return status, RecheckInterval, nil
		}
		statuses = append(statuses, *one)
	}
	status.ManifestStatuses = statuses
	e.setCondition(work, &status, metav1.ConditionTrue, passage.Because(model.ReasonApplied, "cluster %s runs it", m.Name))
	return status, 0, nil
}

// applyManifest brings one object to the cluster, in at most one write.
func (e *reconciler) applyManifest(ctx context.Context, m *member.Client, work *workv1alpha1.Work, i int, manifest *unstructured.Unstructured) (*workv1alpha1.ManifestStatus, Decision, error) {
	live, err := m.Get(ctx, manifest)
	if err != nil {
		return nil, Decision{}, err
	}
	// Not before it may be read: what may not be read cannot be followed, and is complained about for ever.
	if err := m.Watch(manifest.GroupVersionKind()); err != nil {
		return nil, Decision{}, err
	}
	scaled, err := m.IsAutoscaled(ctx, manifest, live)
	if err != nil {
		return nil, Decision{}, err
	}
	before := RecordOf(work, i)
	if done := finishedJob(work, i, manifest, before); live == nil && done != nil {
		return done, Decision{Action: model.ActionNone}, nil
	}
	who := model.IdentityOf(e.hub, manifest)
	v, err := Decide(m.Name, manifest, live, who, before, scaled)
	if err != nil {
		return nil, v, err
	}
	switch v.Action {
	case model.ActionLeave, model.ActionAwait:
		return nil, v, nil
	case model.ActionCreate:
		live = v.Desired
		err = e.createObject(ctx, m, live)
	case model.ActionTakeOver:
		if err := e.backUpOriginal(ctx, m, work, i, live, v.Desired); err != nil {
			return nil, v, err
		}
		fallthrough
	case model.ActionUpdate:
		if v.Reason.Code == model.ReasonDrifted && e.driftLimiter.exceedsLimit(work.UID, e.now()) {
			return nil, Decision{Action: model.ActionLeave, Reason: contestedReason(m.Name, live)}, nil
		}
		live = v.Desired
		err = m.API.Update(ctx, live, client.FieldOwner(model.FieldOwner))
	}
	if err != nil {
		return nil, v, err
	}
	if v.Action != model.ActionNone {
		member.Writes.WithLabelValues(m.Name, string(v.Action)).Inc()
		ctrl.LoggerFrom(ctx).Info("applied a step", "action", v.Action, "cluster", m.Name, "object", manifest.GetKind()+" "+model.NameOf(manifest), "reason", v.Reason.String())
		if before, err = newRecord(manifest, live); err != nil {
			return nil, v, err
		}
	}
	return manifestStatus(i, live, before), v, nil
}

// backUpOriginal keeps an object that is about to be taken over, if that changes anything that a user sees.
func (e *reconciler) backUpOriginal(ctx context.Context, m *member.Client, work *workv1alpha1.Work, i int, live, want *unstructured.Unstructured) error {
	if equalForUsers(live, want) {
		return nil
	}
	// What the two API servers take for granted may differ: the cluster itself knows what would become of it.
	would := want.DeepCopy()
	if err := m.API.Update(ctx, would, client.FieldOwner(model.FieldOwner), client.DryRunAll); err != nil {
		return err
	}
	if equalForUsers(live, would) {
		return nil
	}
	return e.originals.save(ctx, work, i, live)
}

// createObject makes an object, and the namespace that it is in if that is missing.
func (e *reconciler) createObject(ctx context.Context, m *member.Client, object *unstructured.Unstructured) error {
	err := m.API.Create(ctx, object, client.FieldOwner(model.FieldOwner))
	if !apierrors.IsNotFound(err) || object.GetNamespace() == "" {
		return err
	}
	if err := m.API.Create(ctx, model.NewNamespace(object.GetNamespace()), client.FieldOwner(model.FieldOwner)); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create its namespace: %w", err)
	}
	return m.API.Create(ctx, object, client.FieldOwner(model.FieldOwner))
}
