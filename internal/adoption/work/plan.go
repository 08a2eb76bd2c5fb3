package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// Decision is what is to be done about an object in a cluster.
type Decision struct {
	Action passage.Action
	Reason passage.Reason
	// Desired is what is to be written.
	Desired *unstructured.Unstructured
}

// Decide decides about one object of a Work. Nobody's object is taken over only if somebody asks for that, and another hub's
// never.
func Decide(cluster string, desired, live *unstructured.Unstructured, who model.Identity, before Record, scaled bool) (Decision, error) {
	scaled = scaled || desired.GetAnnotations()[manifest.AnnotationRetainReplicas] == "true"
	if live == nil {
		want := manifest.ForMember(desired)
		want.SetLabels(model.MergeKeys(want.GetLabels(), nil, who.Labels()))
		return Decision{Action: model.ActionCreate, Desired: want, Reason: passage.Because("Missing", "it is not there")}, nil
	}
	name := fmt.Sprintf("%s %s", live.GetKind(), model.NameOf(live))
	if live.GetDeletionTimestamp() != nil {
		return Decision{Action: model.ActionAwait, Reason: passage.Because("BeingDeleted", "%s in cluster %s is being deleted, and is made anew when it is gone", name, cluster)}, nil
	}
	want := manifest.Retain(desired, live, who.Labels(), scaled)
	switch who.OwnershipOf(live) {
	case model.ManagedByAnotherHub:
		return Decision{Action: model.ActionLeave, Reason: passage.Because(model.ReasonConflict,
			"%s in cluster %s is managed by another hub, and is left alone: release it there, or delete it here", name, cluster)}, nil
	case model.Unmanaged:
		if desired.GetAnnotations()[policy.AnnotationConflictResolution] != policy.ConflictAnnotation(policyv1alpha1.ConflictOverwrite) {
			return Decision{Action: model.ActionLeave, Reason: passage.Because(model.ReasonConflict,
				"%s exists in cluster %s already, and is left alone: set conflictResolution of the policy to Overwrite, or annotate the resource with %s: overwrite, to take it over; or delete it in the cluster",
				name, cluster, policy.AnnotationConflictResolution)}, nil
		}
		return Decision{Action: model.ActionTakeOver, Desired: want, Reason: passage.Because("Exists", "it is there, and is to be taken over")}, nil
	}
	now, err := newRecord(desired, live)
	if err != nil {
		return Decision{}, err
	}
	switch {
	case before.Manifest != now.Manifest:
		return Decision{Action: model.ActionUpdate, Desired: want, Reason: passage.Because("Changed", "it has changed on the hub")}, nil
	case before.Object != now.Object, !scaled && replicasDiffer(desired, live):
		return Decision{Action: model.ActionUpdate, Desired: want, Reason: passage.Because(model.ReasonDrifted, "somebody has changed it in the cluster")}, nil
	}
	return Decision{Action: model.ActionNone}, nil
}

// replicasDiffer tells that an object has another number of replicas than its manifest says.
func replicasDiffer(manifest, live *unstructured.Unstructured) bool {
	said, found, err := unstructured.NestedInt64(manifest.Object, "spec", "replicas")
	if !found || err != nil {
		return false
	}
	now, found, err := unstructured.NestedInt64(live.Object, "spec", "replicas")
	return !found || err != nil || now != said
}
