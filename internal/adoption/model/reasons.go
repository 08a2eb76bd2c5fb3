package model

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// The reasons of the conditions of a binding.
const (
	ReasonScheduled    passage.Code = "Success"
	ReasonNoCluster    passage.Code = "NoClusterFit"
	ReasonFullyApplied passage.Code = "FullyAppliedSuccess"
	ReasonNotApplied   passage.Code = "FullyAppliedFailed"
	ReasonApplying     passage.Code = "Applying"
)

// ReasonFinished is for a Job or Pod that has finished for an earlier Work, and of which the present Work is not reconciled yet.
const ReasonFinished passage.Code = "Finished"

// ReasonDeferred is for a resource whose policy has activationPreference: Lazy, and takes effect when the template changes.
const ReasonDeferred passage.Code = "LazyActivation"

// The reasons of the condition Ready of a Cluster.
const (
	ReasonReady        passage.Code = "ClusterReady"
	ReasonUnreachable  passage.Code = "ClusterNotReachable"
	ReasonUnauthorized passage.Code = "ClusterTokenRefused"
)

// ReasonUnsupported is for a policy, a binding or a Cluster with a field that the schema takes and that Fairlead does not support.
const ReasonUnsupported passage.Code = "UnsupportedField"

// ReasonRefused is for a binding that names a resource that it may not name, or that has another binding.
const ReasonRefused passage.Code = "ResourceRefused"

// ReasonNoPolicy is for a binding whose template no policy takes, and that has a cluster without a Work.
const ReasonNoPolicy passage.Code = "NoPolicy"

// The reasons of the condition Synced of a Cluster, besides ReasonUnreachable.
const (
	ReasonChecking passage.Code = "Checking"
	ReasonChecked  passage.Code = "Checked"
)

// The reasons of the condition ResourcesReported of a Cluster.
const (
	ReasonReported    passage.Code = "Reported"
	ReasonForbidden   passage.Code = "Forbidden"
	ReasonNotReadable passage.Code = "NotReadable"
)

// CheckingReason is why the states of the objects in a cluster are unknown that can be reached.
func CheckingReason(cluster string) passage.Reason {
	return passage.Because(ReasonChecking, "cluster %s can be reached again, and not all of its objects have been checked yet", cluster)
}

// UnreachableReason is why nothing is written to a cluster, and the states of its objects are unknown.
func UnreachableReason(cluster *clusterv1alpha1.Cluster) passage.Reason {
	why := "the connection has not been checked yet"
	if ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady); ready != nil {
		why = ready.Message
	}
	return passage.Because(ReasonUnreachable, "waiting until cluster %s can be reached: %s", cluster.Name, why)
}

// ReasonContested is for an object that is left alone because another client keeps changing it.
const ReasonContested passage.Code = "Contested"

// The reasons of the condition Applied of a Work.
const (
	ReasonApplied   passage.Code = "AppliedSuccessful"
	ReasonFailed    passage.Code = "AppliedFailed"
	ReasonSuspended passage.Code = "DispatchingSuspended"
	// ReasonTemplateChanged is for a Secret that has other values than those that the Work is for.
	ReasonTemplateChanged passage.Code = "TemplateChanged"
)

// The reasons of the condition Ready of a policy.
const (
	ReasonAllApplied       passage.Code = "Applied"
	ReasonNothingMatched   passage.Code = "NothingMatched"
	ReasonInvalidSelector  passage.Code = "InvalidSelector"
	ReasonInvalidPlacement passage.Code = "InvalidPlacement"
	ReasonNotJoined        passage.Code = "ClusterNotJoined"
	ReasonNotFollowed      passage.Code = "KindNotFollowed"
	ReasonAborted          passage.Code = "Aborted"
	ReasonAborting         passage.Code = "Aborting"
	ReasonPaused           passage.Code = "Paused"
)

// Why a cluster is not ready, if its condition Ready does not tell.
const (
	ReasonLeaving     passage.Code = "Leaving"
	ReasonNotReported passage.Code = "NotAsked"
)

// ReasonNoLeader is why the last report may be out of date.
const ReasonNoLeader passage.Code = "NoLeader"

// ReasonDrifted is why an object is written again that has not changed on the hub.
const ReasonDrifted passage.Code = "Drifted"

// ReasonBeingDeleted is why an object has to wait until another one of its name is gone.
const ReasonBeingDeleted passage.Code = "BeingDeleted"

// ReasonConflict is why an object is left alone.
const ReasonConflict passage.Code = "ResourceConflict"

// SetCondition sets a condition for a generation of an object.
func SetCondition(all *[]metav1.Condition, kind string, is metav1.ConditionStatus, reason passage.Reason, generation int64, now time.Time) {
	meta.SetStatusCondition(all, metav1.Condition{
		Type: kind, Status: is, Reason: string(reason.Code), Message: reason.Message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	})
}
