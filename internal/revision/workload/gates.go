package workload

import (
	"strings"

	"github.com/Masterminds/semver/v3"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/installer"
)

// gates hold the migration, in the order in which a user would ask.
var gates = []passage.Gate[*planner]{
	whileBeingDeleted,
	whileDisabled,
	unlessRevisionBased,
	withInvalidSettings,
	whilePaused,
	aboveMaxVersion,
	untilTargetReady,
	untilInjected,
}

func whileBeingDeleted(p *planner) *passage.Reason {
	if p.Istio.DeletionTimestamp.IsZero() {
		return nil
	}
	return passage.Hold(v1.ReasonBeingDeleted, "Istio %s is being deleted; nothing more is moved", p.Istio.Name)
}

func whileDisabled(p *planner) *passage.Reason {
	migration := p.Istio.Spec.UpdateStrategy.WorkloadMigration
	if migration != nil && migration.Strategy != v1.WorkloadMigrationStrategyDisabled {
		return nil
	}
	return passage.Hold(v1.ReasonMigrationDisabled,
		"workloads are not moved: spec.updateStrategy.workloadMigration.strategy is not set; Batched moves workloads")
}

func unlessRevisionBased(p *planner) *passage.Reason {
	if p.Istio.Spec.UpdateStrategy.Type == v1.UpdateStrategyRevisionBased {
		return nil
	}
	return passage.Hold(v1.ReasonNotRevisionBased,
		"workloads move between revisions, and spec.updateStrategy.type is not RevisionBased")
}

func withInvalidSettings(p *planner) *passage.Reason {
	if _, err := p.settings(); err != nil {
		return passage.Hold(v1.ReasonInvalidSettings, "spec.updateStrategy: %v", err)
	}
	return nil
}

func whilePaused(p *planner) *passage.Reason {
	return installer.WhilePaused(v1.IstioKind, p.Istio)
}

func aboveMaxVersion(p *planner) *passage.Reason {
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

func untilTargetReady(p *planner) *passage.Reason { return p.Target.Hold }
