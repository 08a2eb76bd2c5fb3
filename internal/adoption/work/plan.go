package work

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// Decision is the plan of a Work, and what its steps write.
type Decision struct {
	passage.Plan
	// Desired are the objects that the steps write, nil for a step that writes none or only metadata.
	Desired []*unstructured.Unstructured
	// Deletion is what becomes of the objects of a Work that is being deleted, empty for any other.
	Deletion passage.Action
}

// Decide plans a step for each object of a Work. With a hold, no step is carried out for now.
func Decide(o Observed, now time.Time) Decision {
	d := Decision{Plan: passage.Plan{Passage: model.Passage, Subject: subject(o.Work), Hold: Hold(o), Steps: []passage.Step{}}, Deletion: deletionOf(o)}
	for i := range o.Objects {
		object := &o.Objects[i]
		step := passage.Step{Object: model.ObjectOf(object.Manifest)}
		step.Object.Cluster, _ = model.ClusterOf(o.Work.Namespace)
		p := planner{o: o, Object: object, ordinal: i, cluster: step.Object.Cluster, now: now}
		var desired *unstructured.Unstructured
		if d.Deletion != "" {
			step.Action, step.Reason, desired = p.release(d.Deletion)
		} else {
			step.Action, step.Reason, desired = p.decide()
		}
		step.State = stateOf(step.Action)
		d.Steps, d.Desired = append(d.Steps, step), append(d.Desired, desired)
	}
	return d
}

func subject(work *workv1alpha1.Work) passage.Object {
	return passage.Object{APIVersion: workv1alpha1.GroupVersion.String(), Kind: "Work", Namespace: work.Namespace, Name: work.Name}
}

// Hold is why nothing is written to the member for now, nil if it is.
func Hold(o Observed) *passage.Reason {
	switch deletion := deletionOf(o); {
	case o.Cluster == nil && deletion == "":
		return passage.Hold(model.ReasonLeaving, "the Cluster has been deleted")
	case o.Cluster == nil || deletion == model.ActionAbandon || deletion == model.ActionKeep:
		return nil
	case !o.Connected || !meta.IsStatusConditionTrue(o.Cluster.Status.Conditions, clusterv1alpha1.ConditionReady):
		why := "the connection has not been checked yet"
		if ready := meta.FindStatusCondition(o.Cluster.Status.Conditions, clusterv1alpha1.ConditionReady); ready != nil {
			why = ready.Message
		}
		return passage.Hold(model.ReasonUnreachable, "waiting until cluster %s can be reached: %s", o.Cluster.Name, why)
	case deletion != "":
		return nil
	case o.Cluster.DeletionTimestamp != nil:
		return passage.Hold(model.ReasonLeaving, "cluster %s is leaving the hub", o.Cluster.Name)
	case ptr.Deref(o.Work.Spec.SuspendDispatching, false):
		return passage.Hold(model.ReasonSuspended, "nothing is written to cluster %s while the policy suspends dispatching", o.Cluster.Name)
	}
	return nil
}

func stateOf(action passage.Action) passage.State {
	switch action {
	case model.ActionNone:
		return passage.Done
	case model.ActionLeave:
		return passage.Failed
	case model.ActionWait:
		return passage.Running
	}
	return passage.Pending
}

// planner decides about one object.
type planner struct {
	*Object
	o       Observed
	ordinal int
	cluster string
	now     time.Time
}

// decide what becomes of an object of a Work that stays. An unmanaged object is taken over only if conflictResolution asks for
// that, and one of another hub never.
func (p planner) decide() (passage.Action, passage.Reason, *unstructured.Unstructured) {
	record, who := recordOf(p.o.Work, p.ordinal), model.IdentityOf(p.o.Hub, p.Manifest)
	if p.Live == nil {
		if finishedJob(p.o.Work, p.ordinal, p.Manifest, record) != nil {
			return model.ActionNone, passage.Reason{}, nil
		}
		desired := manifest.ForMember(p.Manifest)
		desired.SetLabels(model.MergeKeys(desired.GetLabels(), nil, who.Labels()))
		return model.ActionCreate, passage.Because("Missing", "cluster %s does not have the object", p.cluster), desired
	}
	name := p.Live.GetKind() + " " + model.NameOf(p.Live)
	if p.Live.GetDeletionTimestamp() != nil {
		return model.ActionWait, passage.Because("BeingDeleted", "%s in cluster %s is being deleted, and is created again when it is gone", name, p.cluster), nil
	}
	autoscaled := p.Autoscaled || p.Manifest.GetAnnotations()[manifest.AnnotationRetainReplicas] == "true"
	desired := manifest.Retain(p.Manifest, p.Live, who.Labels(), autoscaled)
	switch who.OwnershipOf(p.Live) {
	case model.ManagedByAnotherHub:
		return model.ActionLeave, passage.Because(model.ReasonConflict,
			"%s in cluster %s is managed by another hub, and is left alone: release the object from that hub, or delete the object in the cluster", name, p.cluster), nil
	case model.Unmanaged:
		if manifest.ResolutionOf(p.Manifest) != policyv1alpha1.ConflictOverwrite {
			return model.ActionLeave, passage.Because(model.ReasonConflict,
				"%s exists in cluster %s already, and is left alone: set conflictResolution of the policy to Overwrite, or annotate the resource with %s: overwrite, to take over the object; or delete the object in the cluster",
				name, p.cluster, policy.AnnotationConflictResolution), nil
		}
		return model.ActionTakeOver, passage.Because("Exists", "the object exists, and conflictResolution is Overwrite"), desired
	}
	current := newRecord(p.Manifest, p.Live)
	switch {
	case record.Manifest != current.Manifest:
		return model.ActionUpdate, passage.Because("Changed", "the template has changed since the last write"), desired
	case record.Object == current.Object && (autoscaled || !replicasDiffer(p.Manifest, p.Live)):
		return model.ActionNone, passage.Reason{}, nil
	case exceedsLimit(p.Restores, p.now):
		return model.ActionLeave, contestedReason(p.cluster, p.Live), nil
	}
	return model.ActionUpdate, passage.Because(model.ReasonDrifted, "the object was changed in the cluster"), desired
}

// replicasDiffer tells whether an object has another number of replicas than its manifest says.
func replicasDiffer(manifest, live *unstructured.Unstructured) bool {
	want, found, err := unstructured.NestedInt64(manifest.Object, "spec", "replicas")
	if !found || err != nil {
		return false
	}
	have, found, err := unstructured.NestedInt64(live.Object, "spec", "replicas")
	return !found || err != nil || have != want
}
