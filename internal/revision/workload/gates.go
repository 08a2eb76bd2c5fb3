package workload

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
	"github.com/fairlead/fairlead/internal/revision/usage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// gates hold the migration, in the order in which a user would ask.
var gates = []passage.Gate[planner]{
	whileBeingDeleted,
	whileDisabled,
	unlessRevisionBased,
	withInvalidSettings,
	whilePaused,
	aboveMaxVersion,
	untilTargetReady,
	untilTagsMoved,
	untilInjected,
}

func whileBeingDeleted(p planner) *passage.Reason {
	if p.Istio.DeletionTimestamp.IsZero() {
		return nil
	}
	return passage.Hold(v1.ReasonBeingDeleted, "Istio %s is being deleted; nothing more is moved", p.Istio.Name)
}

func whileDisabled(p planner) *passage.Reason {
	migration := p.Istio.Spec.UpdateStrategy.WorkloadMigration
	if migration != nil && migration.Strategy != v1.WorkloadMigrationStrategyDisabled {
		return nil
	}
	return passage.Hold(v1.ReasonMigrationDisabled,
		"workloads are not moved: spec.updateStrategy.workloadMigration.strategy is not set; Batched moves workloads")
}

func unlessRevisionBased(p planner) *passage.Reason {
	if p.Istio.Spec.UpdateStrategy.Type == v1.UpdateStrategyRevisionBased {
		return nil
	}
	return passage.Hold(v1.ReasonNotRevisionBased,
		"workloads move between revisions, and spec.updateStrategy.type is not RevisionBased")
}

func withInvalidSettings(p planner) *passage.Reason {
	if _, err := p.settings(); err != nil {
		return passage.Hold(v1.ReasonInvalidSettings, "spec.updateStrategy: %v", err)
	}
	return nil
}

func whilePaused(p planner) *passage.Reason {
	return installer.WhilePaused(v1.IstioKind, p.Istio)
}

func aboveMaxVersion(p planner) *passage.Reason {
	settings, err := p.settings()
	if err != nil || settings.MaxVersion == nil || p.Target.Version == "" {
		return nil
	}
	version, err := semver.StrictNewVersion(strings.TrimPrefix(p.Target.Version, "v"))
	if err != nil {
		return passage.Hold(v1.ReasonMaxVersionExceeded,
			"cannot compare version %q with batched.maxVersion %s: %v", p.Target.Version, settings.MaxVersion, err)
	}
	if version.GreaterThan(settings.MaxVersion) {
		return passage.Hold(v1.ReasonMaxVersionExceeded,
			"%s is above batched.maxVersion %s; raise it, and workloads move to %s",
			p.Target.Version, settings.MaxVersion, p.Target.Name)
	}
	return nil
}

func untilTargetReady(p planner) *passage.Reason { return p.Target.Hold }

// untilTagsMoved holds restarts that would come up on the old revision.
func untilTagsMoved(p planner) *passage.Reason {
	for i := range p.Tags {
		if tag := &p.Tags[i]; p.follows(tag) && tag.Status.IstioRevision != p.Target.Name && tagHold(tag) == "" && p.isUsed(tag.Name) {
			why := ""
			if reconciled := meta.FindStatusCondition(tag.Status.Conditions, string(v1.ConditionReconciled)); reconciled != nil &&
				reconciled.Status == metav1.ConditionFalse {
				why = ": " + reconciled.Message
			}
			return passage.Hold(v1.ReasonTagNotMoved, "IstioRevisionTag %s has not moved yet to %s%s", tag.Name, p.Target.Name, why)
		}
	}
	return nil
}

// isUsed tells whether any workload that could move selects a name.
func (p planner) isUsed(name string) bool {
	for _, ns := range p.Inventory.Namespaces {
		if usage.Choose(ns.Labels, nil).Name == name {
			return true
		}
	}
	return slices.ContainsFunc(p.Inventory.Workloads, func(w *inventory.Workload) bool {
		return p.moves(w.Kind) && usage.Choose(p.Inventory.Namespaces[w.Namespace].Labels, w.PodLabels).Name == name
	})
}
