package consumers

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fairlead/fairlead/api/fairlead"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/passage"
)

// Progress is the recorded progress of a mesh.
type Progress struct {
	Plan     passage.Plan
	Batching passage.Batching
	// Requested says that there is an intent, and Observed that the record includes it and its retries.
	Requested, Observed bool
}

// ReadProgress reads the progress from a Mesh of WithRecord.
func ReadProgress(mesh *kumav1alpha1.Mesh) Progress {
	intent, err := IntentOf(mesh)
	record := mesh.Status.Migration
	condition := meta.FindStatusCondition(mesh.Status.Conditions, kumav1alpha1.ConditionConsumersSwitched)
	s := Progress{Requested: intent != nil || err != nil}
	if record == nil {
		s.Plan = planOf(mesh, &kumav1alpha1.MeshMigration{}, intent)
		// A completed revert leaves no record.
		s.Observed = !s.Requested || intent != nil && intent.Revert && condition != nil && condition.Reason == kumav1alpha1.ReasonReverted
	} else {
		s.Plan, s.Batching = planOf(mesh, record, intent), batchingOf(record)
		retry := mesh.Annotations[fairlead.AnnotationRetry]
		s.Observed = (intent == nil || intent.ID == record.Intent) && (retry == "" || retry == record.Retry)
	}
	if condition != nil && record != nil && record.Phase == string(passage.Held) {
		s.Plan.Hold = passage.Hold(condition.Reason, "%s", condition.Message)
	}
	return s
}

// PlanBatches returns the batches of an intent, regardless of gates.
func PlanBatches(mesh *kumav1alpha1.Mesh, intent Intent, consumers []string, now time.Time) passage.Decision {
	record := mesh.Status.Migration.DeepCopy()
	if record == nil {
		record = &kumav1alpha1.MeshMigration{}
	}
	startIntent(record, intent, "", now, nil)
	if !intent.Revert {
		addConsumers(record, &intent, consumers, now)
	}
	return passage.Next(planOf(mesh, record, &intent), batchingOf(record), now)
}
