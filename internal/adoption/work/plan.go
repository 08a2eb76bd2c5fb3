package work

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// Step is what becomes of one object of a Work.
type Step struct {
	passage.Step
	// Desired is the object that the step writes, nil for a step that writes none or only metadata.
	Desired *unstructured.Unstructured
}

// Decide plans the step of an object of a Work. With a hold, no step is carried out for now.
func Decide(o Observed, object Object) Step {
	step := Step{Step: passage.Step{Object: model.ObjectOf(object.Manifest)}}
	step.Object.Cluster, _ = model.ClusterOf(o.Work.Namespace)
	if deletion := DeletionOf(o); deletion != "" {
		step.Action, step.Reason, step.Desired = release(o, object, deletion)
	} else {
		step.Action, step.Reason, step.Desired = decide(o, object, step.Object.Cluster)
	}
	return step
}

// Hold is why nothing is written to the member for now, nil if it is.
func Hold(o Observed) *passage.Reason {
	switch deletion := DeletionOf(o); {
	case o.Cluster == nil && deletion == "":
		return passage.Hold(model.ReasonLeaving, "the Cluster has been deleted")
	case o.Cluster == nil || deletion == model.ActionAbandon || deletion == model.ActionKeep:
		return nil
	case !isReachable(o):
		reason := model.UnreachableReason(o.Cluster)
		return &reason
	case deletion != "":
		return nil
	case o.Cluster.DeletionTimestamp != nil:
		return passage.Hold(model.ReasonLeaving, "cluster %s is leaving the hub", o.Cluster.Name)
	case ptr.Deref(o.Work.Spec.SuspendDispatching, false):
		return passage.Hold(model.ReasonSuspended, "nothing is written to cluster %s while the policy suspends dispatching", o.Cluster.Name)
	case o.Changed != nil:
		return passage.Hold(model.ReasonTemplateChanged,
			"%s has changed on the hub while no policy takes it, and its object in cluster %s is not compared any more: select the resource with a policy, or delete it on the hub",
			model.ObjectOf(o.Changed), o.Cluster.Name)
	}
	return nil
}

// decide what becomes of an object of a Work that stays. An unmanaged object is taken over only if conflictResolution asks for
// that, and one of another hub, or of a control plane of Karmada, never.
func decide(o Observed, object Object, cluster string) (passage.Action, passage.Reason, *unstructured.Unstructured) {
	record, who := recordOf(o.Work, object.Ordinal), model.IdentityOf(o.Hub, object.Manifest)
	if object.Live == nil {
		if finishedStatus(o.Work, object) != nil {
			return model.ActionNone, finishedReason(object.Manifest), nil
		}
		desired := manifest.ForMember(object.Manifest)
		desired.SetLabels(model.MergeKeys(desired.GetLabels(), nil, who.Labels()))
		return model.ActionCreate, passage.Because("Missing", "cluster %s does not have the object", cluster), desired
	}
	name := object.Live.GetKind() + " " + model.NameOf(object.Live)
	if object.Live.GetDeletionTimestamp() != nil {
		if who.OwnershipOf(object.Live) == model.ManagedHere && finishedStatus(o.Work, object) != nil {
			return model.ActionNone, finishedReason(object.Manifest), nil
		}
		return model.ActionWait, passage.Because(model.ReasonBeingDeleted, "%s in cluster %s is being deleted, and is created again when it is gone", name, cluster), nil
	}
	autoscaled := object.Autoscaled || object.Manifest.GetAnnotations()[manifest.AnnotationRetainReplicas] == "true"
	desired := manifest.Retain(object.Manifest, object.Live, who.Labels(), autoscaled)
	switch who.OwnershipOf(object.Live) {
	case model.ManagedByAnotherHub:
		return model.ActionLeave, passage.Because(model.ReasonConflict,
			"%s in cluster %s is managed by another hub, and is left alone: release the object from that hub, or delete the object in the cluster", name, cluster), nil
	case model.ManagedByKarmada:
		if model.IsOfKarmadaWork(object.Live, o.Work) {
			return model.ActionUpdate, passage.Because("Inherited", "Karmada has written the object for this Work"), desired
		}
		return model.ActionLeave, passage.Because(model.ReasonConflict,
			"%s in cluster %s is managed by another control plane, by its %s, and is left alone: release the object from that control plane, or remove the labels and annotations of karmada.io from the object if there is no such control plane; or delete the object in the cluster",
			name, cluster, model.KarmadaMark(object.Live)), nil
	case model.Unmanaged:
		if manifest.ResolutionOf(object.Manifest) != policyv1alpha1.ConflictOverwrite {
			return model.ActionLeave, passage.Because(model.ReasonConflict,
				"%s exists in cluster %s already, and is left alone: set conflictResolution of the policy to Overwrite, or annotate the resource with %s: overwrite, to take over the object; or delete the object in the cluster",
				name, cluster, policy.AnnotationConflictResolution), nil
		}
		return model.ActionTakeOver, passage.Because("Exists", "the object exists, and conflictResolution is Overwrite"), desired
	}
	current := newRecord(object.Manifest, object.Live)
	switch {
	case record.Manifest != current.Manifest:
		return model.ActionUpdate, passage.Because("Changed", "the template has changed since the last write"), desired
	case record.Object == current.Object && (autoscaled || !replicasDiffer(object)):
		return model.ActionNone, passage.Reason{}, nil
	case object.Restores >= maxRestores:
		return model.ActionLeave, contestedReason(cluster, object.Live), nil
	}
	return model.ActionUpdate, passage.Because(model.ReasonDrifted, "the object was changed in the cluster"), desired
}

func finishedReason(object *unstructured.Unstructured) passage.Reason {
	return passage.Because("Finished", "the %s has finished, and runs again only if its template changes", object.GetKind())
}

// replicasDiffer tells whether an object has another number of replicas than its manifest says.
func replicasDiffer(object Object) bool {
	want, wanted, _ := unstructured.NestedInt64(object.Manifest.Object, "spec", "replicas")
	have, found, _ := unstructured.NestedInt64(object.Live.Object, "spec", "replicas")
	return wanted && (!found || have != want)
}

const (
	// maxRestores is how often drift is reverted within restoreWindow before an object is left alone for the rest of it.
	maxRestores   = 5
	restoreWindow = time.Minute
)

// contestedReason says who keeps changing an object, as far as that is known.
func contestedReason(cluster string, live *unstructured.Unstructured) passage.Reason {
	who := "another client"
	others := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == model.FieldOwner || e.Subresource != "" || e.Time == nil
	})
	if len(others) > 0 {
		who = slices.MaxFunc(others, func(a, b metav1.ManagedFieldsEntry) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) }).Manager
	}
	return passage.Because(model.ReasonContested, "%s %s in cluster %s was restored %d times within %s, and %s keeps changing the object: stop these changes, or remove the field from the template",
		live.GetKind(), model.NameOf(live), cluster, maxRestores, restoreWindow, who)
}
