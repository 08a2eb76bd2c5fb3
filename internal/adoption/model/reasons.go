package model

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// The reasons of the condition Ready of a Cluster.
const (
	ReasonReady        passage.Code = "ClusterReady"
	ReasonUnreachable  passage.Code = "ClusterNotReachable"
	ReasonUnauthorized passage.Code = "ClusterTokenRefused"
)

// ReasonUnsupported is for a policy, a binding or a Cluster with a field that the schema takes and that Fairlead does not support.
const ReasonUnsupported passage.Code = "UnsupportedField"

// ReasonContested is for an object that is left alone because another client keeps changing it.
const ReasonContested passage.Code = "Contested"

// The reasons of the condition Applied of a Work.
const (
	ReasonApplied   passage.Code = "AppliedSuccessful"
	ReasonFailed    passage.Code = "AppliedFailed"
	ReasonSuspended passage.Code = "DispatchingSuspended"
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

// ReasonDrifted is why an object is written again that has not changed on the hub.
const ReasonDrifted passage.Code = "Drifted"

// ReasonConflict is why an object is left alone.
const ReasonConflict passage.Code = "ResourceConflict"

// SetCondition sets a condition for a generation of an object.
func SetCondition(all *[]metav1.Condition, kind string, is metav1.ConditionStatus, reason passage.Reason, generation int64, now time.Time) {
	meta.SetStatusCondition(all, metav1.Condition{
		Type: kind, Status: is, Reason: string(reason.Code), Message: reason.Message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	})
}
