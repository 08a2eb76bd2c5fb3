package workload

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/injection"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// Observed is what the passage sees of one Istio and of all workloads.
type Observed struct {
	Istio *v1.Istio
	// Revisions and Tags are all in the cluster: a label may name any of them.
	Revisions []v1.IstioRevision
	Tags      []v1.IstioRevisionTag
	Target    Target
	Inventory inventory.Snapshot
	// Refused has the objects whose change was refused, by UID.
	Refused map[types.UID]Refusal
	// Unwritten has the marks of ended moves that the API server refused.
	Unwritten map[types.UID]Mark
	// Injection is what dry runs of pods have shown, for the ways by which workloads that are to move select their injector.
	// Ways that were not checked are missing.
	Injection map[injection.Way]injection.Result
	// reportedInjection is the hold for this that the status reports, for commands.
	reportedInjection *passage.Reason
	// unreportedFailures is set where more workloads have failed than the status has room for.
	unreportedFailures bool
	// marks caches parsed marks between plans; it may be nil.
	marks *markCache
}

// Target is the revision that workloads belong on.
type Target struct {
	Name, Version string
	// Hold is why nothing can move there yet, or nil.
	Hold *passage.Reason
}

// Observe reads an Istio, all revisions and all tags. The target is its active revision.
func Observe(ctx context.Context, reader client.Reader, name string, snapshot inventory.Snapshot) (Observed, error) {
	istio := &v1.Istio{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, istio); err != nil {
		return Observed{}, fmt.Errorf("get Istio %s: %w", name, err)
	}
	var revisions v1.IstioRevisionList
	if err := reader.List(ctx, &revisions); err != nil {
		return Observed{}, fmt.Errorf("list IstioRevisions: %w", err)
	}
	var tags v1.IstioRevisionTagList
	if err := reader.List(ctx, &tags); err != nil {
		return Observed{}, fmt.Errorf("list IstioRevisionTags: %w", err)
	}
	o := Observed{Istio: istio, Revisions: revisions.Items, Tags: tags.Items, Inventory: snapshot}
	o.Target = o.activeTarget()
	o.restoreFailures()
	return o, nil
}

func (o Observed) activeTarget() Target {
	name := o.Istio.Status.ActiveRevisionName
	revision := o.revision(name)
	switch {
	case name == "":
		return Target{Hold: passage.Hold(v1.ReasonRevisionNotActive, "Istio %s has no active revision yet", o.Istio.Name)}
	case o.Istio.Status.ObservedGeneration < o.Istio.Generation:
		return Target{Name: name, Hold: passage.Hold(v1.ReasonRevisionNotActive,
			"the spec of Istio %s has changed and is not reconciled yet", o.Istio.Name)}
	case revision == nil:
		return Target{Name: name, Hold: passage.Hold(v1.ReasonRevisionNotActive,
			"IstioRevision %s, the active one, does not exist", name)}
	}
	return o.TargetOf(revision)
}

// TargetOf is a revision as the target.
func (o Observed) TargetOf(revision *v1.IstioRevision) Target {
	target := Target{Name: revision.Name, Version: revision.Spec.Version}
	ready := meta.FindStatusCondition(revision.Status.Conditions, string(v1.ConditionReady))
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration < revision.Generation {
		target.Hold = passage.Hold(v1.ReasonRevisionNotReady, "IstioRevision %s is not ready; workloads move when it is", revision.Name)
	}
	return target
}

// FutureTarget is a revision that is not the active one yet as the target. It may not exist.
func (o Observed) FutureTarget(name, version string) Target {
	if revision := o.revision(name); revision != nil {
		return o.TargetOf(revision)
	}
	return Target{Name: name, Version: version, Hold: passage.Hold(v1.ReasonRevisionNotReady,
		"workloads move when IstioRevision %s exists and is ready", name)}
}

func (o Observed) revision(name string) *v1.IstioRevision {
	for i := range o.Revisions {
		if o.Revisions[i].Name == name {
			return &o.Revisions[i]
		}
	}
	return nil
}

// find is the workload of a step, or nil.
func (o Observed) find(object passage.Object) *inventory.Workload {
	return o.Inventory.Find(object.Kind, object.Namespace, object.Name)
}

func (o Observed) settings() (v1.MigrationSettings, error) {
	return o.Istio.Spec.UpdateStrategy.WorkloadMigration.Settings()
}

// Batching is how the spec asks for workloads to be moved.
func (o Observed) Batching() passage.Batching {
	settings, err := o.settings()
	if err != nil {
		return passage.Batching{}
	}
	return passage.Batching{
		Size:     settings.BatchSize,
		Delay:    settings.DelayBetweenBatches,
		FailFast: settings.FailurePolicy == v1.FailurePolicyFailFast,
	}
}

// lastRunStart is when the last migration to the target started; zero if there was none.
func (o Observed) lastRunStart() time.Time {
	status := o.Istio.Status.WorkloadMigration
	if status == nil || status.TargetRevision != o.Target.Name || status.StartTime == nil {
		return time.Time{}
	}
	return status.StartTime.Time
}

// isRunning tells whether that migration has not ended.
func (o Observed) isRunning() bool {
	return !o.lastRunStart().IsZero() && o.Istio.Status.WorkloadMigration.State == v1.WorkloadMigrationStateInProgress
}

// retryRequest is the last request to retry: the value of the annotation.
func (o Observed) retryRequest() string { return o.Istio.Annotations[fairlead.AnnotationRetry] }

// hasStalePods tells whether a move would fail only because the cache does not have its new pods yet.
func (r *reconciler) hasStalePods(ctx context.Context, ended []endedMove) (bool, error) {
	for _, e := range ended {
		if e.mark.Reason == nil || v1.Reason(e.mark.Reason.Code) != v1.ReasonWrongRevision {
			continue
		}
		pods, err := inventory.CountPods(ctx, r.live, e.Owner())
		if err != nil {
			return false, err
		}
		if len(otherRevisions(pods, e.mark.Target)) == 0 {
			return true, nil
		}
	}
	return false, nil
}

func (r *reconciler) observe(ctx context.Context, name string) (Observed, error) {
	defer kube.Span(&ctx, kube.StageObserve)()
	o, err := Observe(ctx, r.client, name, r.inventory.Snapshot())
	if err == nil {
		o.marks = &r.marks
		r.writer.addRefusals(&o)
	}
	return o, err
}

// checkInjection adds whether the pods of workloads that are to move would get their sidecars, and tells whether that holds the
// migration. It asks only when steps would start.
func (r *reconciler) checkInjection(ctx context.Context, o *Observed, d decision) (held bool, err error) {
	if len(d.Start) == 0 || o.Istio.Annotations[v1.AnnotationSkipInjectionCheck] == "true" {
		return false, nil
	}
	o.Injection, err = r.injection.Check(ctx, newPlanner(*o, r.now()).injectionRequest(d.Plan))
	return o.injectionHold() != nil, err
}
