package consumers

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// Standing is how far the consumers of a mesh are, as it is recorded.
type Standing struct {
	Plan     passage.Plan
	Batching passage.Batching
	// Asked says that there is an intent, and Followed that the record is of it, retries included.
	Asked, Followed bool
}

// StandingOf reads it from nothing but the Mesh.
func StandingOf(mesh *kumav1alpha1.Mesh) Standing {
	intent, err := IntentOf(mesh)
	record := mesh.Status.Migration
	condition := meta.FindStatusCondition(mesh.Status.Conditions, kumav1alpha1.ConditionConsumersSwitched)
	s := Standing{Asked: intent != nil || err != nil}
	if record == nil {
		s.Plan = planOf(mesh, &kumav1alpha1.MeshMigration{}, intent)
		// What has been taken back leaves no record.
		s.Followed = !s.Asked || intent != nil && intent.Revert && condition != nil && condition.Reason == kumav1alpha1.ReasonReverted
	} else {
		s.Plan, s.Batching = planOf(mesh, record, intent), batchingOf(record)
		retry := mesh.Annotations[fairlead.AnnotationRetry]
		s.Followed = (intent == nil || intent.ID == record.Intent) && (retry == "" || retry == record.Retry)
	}
	if condition != nil && record != nil && record.Phase == string(passage.Held) {
		reason := passage.Because(condition.Reason, "%s", condition.Message)
		s.Plan.Hold = &reason
	}
	return s
}

// Foresee tells in which batches the consumers of a mesh would go, if nothing held them up.
func Foresee(mesh *kumav1alpha1.Mesh, intent Intent, consumers []string, now time.Time) passage.Decision {
	record := mesh.Status.Migration.DeepCopy()
	if record == nil {
		record = &kumav1alpha1.MeshMigration{}
	}
	follow(record, intent, "", now)
	if !intent.Revert {
		join(record, &intent, consumers, now)
	}
	return passage.Next(planOf(mesh, record, &intent), batchingOf(record), now)
}

// Hindrance is why the mode of a mesh leaves nothing to do for an intent; nil if it does not.
func Hindrance(mesh *kumav1alpha1.Mesh, intent Intent) *passage.Reason {
	return modeHold(mesh, intent.Revert)
}
