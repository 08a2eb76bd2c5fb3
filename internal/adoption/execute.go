package adoption

import (
	"context"
	"encoding/json"
	"errors"
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

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// LookAgain is how often what was refused, or is in conflict, is looked at again, besides when anything on the hub changes.
const LookAgain = 20 * time.Second

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
	undo    *undoing
	now     func() time.Time
	latest  latest
	// contests are the objects that somebody else keeps changing.
	contests contests
}

// Reconcile brings one Work to its cluster.
func (e *executor) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var work workv1alpha1.Work
	if err := e.client.Get(ctx, request.NamespacedName, &work); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if e.latest.behind(&work) {
		return ctrl.Result{RequeueAfter: catchUp}, nil
	}
	name, ok := clusterOf(work.Namespace)
	if !ok {
		return ctrl.Result{}, nil
	}
	var cluster clusterv1alpha1.Cluster
	if err := e.client.Get(ctx, client.ObjectKey{Name: name}, &cluster); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if going := !work.DeletionTimestamp.IsZero(); going && (err != nil || abandoned(&cluster)) {
		// There is no cluster any more that anything could be written to.
		return ctrl.Result{}, errors.Join(e.undo.forget(ctx, &work), e.finish(ctx, &work))
	} else if err != nil {
		return ctrl.Result{}, nil
	}
	how, err := e.parting(ctx, &work, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if how == keepOn {
		return ctrl.Result{}, e.finish(ctx, &work)
	}
	m := e.members.get(name)
	if m == nil || !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady) {
		// When the cluster can be reached, all of its Works are looked at.
		return ctrl.Result{}, e.await(ctx, &work, &cluster)
	}
	if !work.DeletionTimestamp.IsZero() {
		err := e.release(ctx, m, &work, how)
		if err == nil || !telling(err) {
			return ctrl.Result{}, err
		}
		status := *work.Status.DeepCopy()
		e.tell(&work, &status, metav1.ConditionFalse, passage.Because(ReasonFailed, "%v", err))
		return ctrl.Result{RequeueAfter: LookAgain}, e.write(ctx, &work, status)
	}
	if cluster.DeletionTimestamp != nil {
		// Nothing is begun in a cluster that leaves.
		return ctrl.Result{}, nil
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

// parting is what becomes of the object of a Work, if that is going.
func (e *executor) parting(ctx context.Context, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) (parting, error) {
	if work.DeletionTimestamp.IsZero() {
		return "", nil
	}
	var binding *binding
	for _, key := range bindingOf(ctx, work) {
		var err error
		if binding, err = getBinding(ctx, e.client, key.Namespace, key.Name); err != nil {
			return "", err
		}
	}
	return partingFor(work, cluster, binding), nil
}

// await tells on a Work that has something to write that it cannot.
func (e *executor) await(ctx context.Context, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) error {
	condition := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	pending := condition == nil || condition.ObservedGeneration < work.Generation
	if !pending || ready == nil || ready.Status != metav1.ConditionFalse || !work.DeletionTimestamp.IsZero() {
		return nil
	}
	status := *work.Status.DeepCopy()
	e.tell(work, &status, metav1.ConditionFalse, passage.Because(ReasonUnreachable, "it waits until cluster %s can be reached: %s", cluster.Name, ready.Message))
	return e.write(ctx, work, status)
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
		if err := manifest.UnmarshalJSON(raw.Raw); err != nil {
			return status, 0, fmt.Errorf("read manifest %d of Work %s/%s: %w", i, work.Namespace, work.Name, err)
		}
		one, verdict, err := e.one(ctx, m, work, i, manifest)
		switch {
		case err != nil && !telling(err):
			return status, 0, err
		case err != nil:
			e.tell(work, &status, metav1.ConditionFalse, refused(m.name, manifest, err))
			return status, LookAgain, nil
		case verdict.action == ActionLeave || verdict.action == ActionAwait:
			e.tell(work, &status, metav1.ConditionFalse, verdict.reason)
			return status, LookAgain, nil
		}
		statuses = append(statuses, *one)
	}
	status.ManifestStatuses = statuses
	e.tell(work, &status, metav1.ConditionTrue, passage.Because(ReasonApplied, "cluster %s runs it", m.name))
	return status, 0, nil
}

// one brings one object to the cluster, in at most one write.
func (e *executor) one(ctx context.Context, m *member, work *workv1alpha1.Work, i int, manifest *unstructured.Unstructured) (*workv1alpha1.ManifestStatus, verdict, error) {
	live, err := m.find(ctx, manifest)
	if err != nil {
		return nil, verdict{}, err
	}
	// Not before it may be read: what may not be read cannot be followed, and is complained about for ever.
	if err := m.follow(manifest.GroupVersionKind()); err != nil {
		return nil, verdict{}, err
	}
	scaled, err := m.scaled(ctx, manifest, live)
	if err != nil {
		return nil, verdict{}, err
	}
	before := recordOf(work, i)
	if done := finished(work, i, manifest, before); live == nil && done != nil {
		return done, verdict{action: ActionNone}, nil
	}
	who := identityOf(e.hub, manifest)
	v, err := settle(m.name, manifest, live, who, before, scaled)
	if err != nil {
		return nil, v, err
	}
	switch v.action {
	case ActionLeave, ActionAwait:
		return nil, v, nil
	case ActionCreate:
		live = v.want
		err = e.create(ctx, m, live)
	case ActionTakeOver:
		if err := e.remember(ctx, m, work, i, live, v.want); err != nil {
			return nil, v, err
		}
		fallthrough
	case ActionUpdate:
		if v.reason.Code == ReasonDrifted && e.contests.hopeless(work.UID, e.now()) {
			return nil, verdict{action: ActionLeave, reason: contested(m.name, live)}, nil
		}
		live = v.want
		err = m.client.Update(ctx, live, client.FieldOwner(FieldOwner))
	}
	if err != nil {
		return nil, v, err
	}
	if v.action != ActionNone {
		memberWrites.WithLabelValues(m.name, string(v.action)).Inc()
		ctrl.LoggerFrom(ctx).Info("applied a step", "action", v.action, "cluster", m.name, "object", manifest.GetKind()+" "+nameOf(manifest), "reason", v.reason.String())
		if before, err = remember(manifest, live); err != nil {
			return nil, v, err
		}
	}
	return statusOf(i, live, before), v, nil
}

// remember keeps an object that is about to be taken over, if that changes anything that a user sees.
func (e *executor) remember(ctx context.Context, m *member, work *workv1alpha1.Work, i int, live, want *unstructured.Unstructured) error {
	if same(live, want) {
		return nil
	}
	// What the two API servers take for granted may differ: the cluster itself knows what would become of it.
	would := want.DeepCopy()
	if err := m.client.Update(ctx, would, client.FieldOwner(FieldOwner), client.DryRunAll); err != nil {
		return err
	}
	if same(live, would) {
		return nil
	}
	return e.undo.keep(ctx, work, i, live)
}

// create makes an object, and the namespace that it is in if that is missing.
func (e *executor) create(ctx context.Context, m *member, object *unstructured.Unstructured) error {
	err := m.client.Create(ctx, object, client.FieldOwner(FieldOwner))
	if !apierrors.IsNotFound(err) || object.GetNamespace() == "" {
		return err
	}
	if err := m.client.Create(ctx, namespaceNamed(object.GetNamespace()), client.FieldOwner(FieldOwner)); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create its namespace: %w", err)
	}
	return m.client.Create(ctx, object, client.FieldOwner(FieldOwner))
}

func namespaceNamed(name string) *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	return namespace
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
	}
	if said, found := live.Object["status"]; found {
		if text, err := json.Marshal(said); err == nil {
			s.Status = &runtime.RawExtension{Raw: text}
		}
	}
	return s
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
	if err == nil {
		e.latest.wrote(work)
	}
	return nil
}
