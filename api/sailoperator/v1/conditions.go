package v1

// ConditionType is the type of an entry in status.conditions.
type ConditionType string

// Conditions of the resources in this group.
const (
	// ConditionReconciled tells whether what the spec asks for has been written to the cluster.
	ConditionReconciled ConditionType = "Reconciled"
	// ConditionReady tells whether the control plane serves: on an Istio, the one of its active revision.
	ConditionReady ConditionType = "Ready"
	// ConditionInUse tells whether anything refers to the revision or tag.
	ConditionInUse ConditionType = "InUse"
	// ConditionResolvedRefs is there, and false, while namespaces, workloads or pods name revisions or tags that do not exist.
	ConditionResolvedRefs ConditionType = "ResolvedRefs"
	// ConditionWorkloadsMigrated tells whether the workloads of an Istio run on its active revision.
	ConditionWorkloadsMigrated ConditionType = "WorkloadsMigrated"
)

// Reason is the machine-readable reason of a condition.
type Reason string

// Reasons of Reconciled.
const (
	ReasonReconciled        Reason = "Reconciled"
	ReasonReconcileError    Reason = "ReconcileError"
	ReasonVersionNotFound   Reason = "VersionNotFound"
	ReasonNamespaceNotFound Reason = "NamespaceNotFound"
	// ReasonNameAlreadyExists is set on the younger of a revision and a tag that share a name.
	ReasonNameAlreadyExists Reason = "NameAlreadyExists"
	// ReasonRefNotFound means that a tag's targetRef names nothing that exists, or, on an Istio, that labels do.
	ReasonRefNotFound Reason = "RefNotFound"
	// ReasonPaused means that fairlead.dev/paused holds everything that is not written yet.
	ReasonPaused Reason = "Paused"
	// ReasonBeingDeleted means that nothing more is written because the resource is on its way out.
	ReasonBeingDeleted Reason = "BeingDeleted"
	// ReasonRefused means that the API server will not take what the spec asks for; it is asked again now and then.
	ReasonRefused Reason = "Refused"
	// ReasonRevisionNameTooLong means that name and version of an Istio together do not fit a revision's name.
	ReasonRevisionNameTooLong Reason = "RevisionNameTooLong"
	// What is still to be written for an Istio, and why.
	ReasonRevisionMissing  Reason = "RevisionMissing"
	ReasonRevisionDiffers  Reason = "RevisionDiffers"
	ReasonRevisionOrphaned Reason = "RevisionOrphaned"
	ReasonNameInDeletion   Reason = "NameInDeletion"
	// What is still to be written of the tag "default" that an Istio asks for.
	ReasonTagMissing     Reason = "TagMissing"
	ReasonTagDiffers     Reason = "TagDiffers"
	ReasonTagNotAskedFor Reason = "TagNotAskedFor"
	// What becomes of revisions and tags when another revision is the active one.
	ReasonFollowsIstio  Reason = "FollowsIstio"
	ReasonInactive      Reason = "Inactive"
	ReasonRevisionInUse Reason = "InUse"
	// ReasonChartsUnavailable means that the source of charts does not answer.
	ReasonChartsUnavailable Reason = "ChartsUnavailable"
	// ReasonChartChanged means that a chart is not the one that was first installed under its version.
	ReasonChartChanged Reason = "ChartChanged"
	// ReasonChartNotVerified means that a chart is not signed by a key that the operator was given.
	ReasonChartNotVerified Reason = "ChartNotVerified"
	// ReasonTemplateError means that the charts cannot be rendered with the values of the spec.
	ReasonTemplateError Reason = "TemplateError"
	// ReasonOwnedByOthers means that something to be installed exists, and that somebody else has installed it.
	ReasonOwnedByOthers Reason = "OwnedByOthers"
	// What is still to be installed for a revision or tag, and why.
	ReasonNotInstalled   Reason = "NotInstalled"
	ReasonReleaseDiffers Reason = "ReleaseDiffers"
	ReasonReleaseBroken  Reason = "ReleaseBroken"
	ReasonObjectMissing  Reason = "ObjectMissing"
	ReasonObjectEdited   Reason = "ObjectEdited"
)

// Reasons of Ready.
const (
	ReasonIstiodReady            Reason = "IstiodReady"
	ReasonIstiodNotReady         Reason = "IstiodNotReady"
	ReasonReadinessCheckFailed   Reason = "ReadinessCheckFailed"
	ReasonActiveRevisionNotFound Reason = "ActiveRevisionNotFound"
)

// Reasons of InUse.
const (
	ReasonReferencedByWorkloads   Reason = "ReferencedByWorkloads"
	ReasonReferencedByTag         Reason = "ReferencedByTag"
	ReasonNotReferencedByAnything Reason = "NotReferencedByAnything"
	ReasonUsageCheckFailed        Reason = "UsageCheckFailed"
)

// Reasons of WorkloadsMigrated.
const (
	ReasonMigrated        Reason = "Migrated"
	ReasonMigrating       Reason = "Migrating"
	ReasonMigrationFailed Reason = "MigrationFailed"
	// ReasonMigrationDisabled means that updateStrategy.workloadMigration.strategy is not set.
	ReasonMigrationDisabled Reason = "MigrationDisabled"
	// ReasonNotRevisionBased means that there is only ever one revision, and nothing to move workloads to.
	ReasonNotRevisionBased Reason = "NotRevisionBased"
	// ReasonInvalidSettings means that updateStrategy.workloadMigration holds something that makes no sense.
	ReasonInvalidSettings Reason = "InvalidSettings"
	// ReasonMaxVersionExceeded means that the active revision is of a version above batched.maxVersion.
	ReasonMaxVersionExceeded Reason = "MaxVersionExceeded"
	// ReasonRevisionNotActive means that the revision that the spec asks for is not the active one yet.
	ReasonRevisionNotActive Reason = "RevisionNotActive"
	// ReasonRevisionNotReady means that the control plane of the active revision does not serve yet.
	ReasonRevisionNotReady Reason = "RevisionNotReady"
	// ReasonTagNotMoved means that a tag that follows the Istio has yet to move to the active revision.
	ReasonTagNotMoved Reason = "TagNotMoved"
	// ReasonInjectionFailed means that a dry run of a pod did not come back with the sidecar of the active revision.
	ReasonInjectionFailed Reason = "InjectionFailed"
	// ReasonInjectionNotChecked means that no such dry run was possible.
	ReasonInjectionNotChecked Reason = "InjectionNotChecked"
)

// Why a workload moves, stays or has failed.
const (
	ReasonOnOldRevision      Reason = "OnOldRevision"
	ReasonNamesOldRevision   Reason = "NamesOldRevision"
	ReasonRunsOnTarget       Reason = "RunsOnTarget"
	ReasonNoPods             Reason = "NoPods"
	ReasonNoSidecar          Reason = "NoSidecar"
	ReasonRetried            Reason = "Retried"
	ReasonTargetChanged      Reason = "TargetChanged"
	ReasonNamespaceRefused   Reason = "NamespaceRefused"
	ReasonContested          Reason = "Contested"
	ReasonNotReported        Reason = "NotReported"
	ReasonSkippedByUser      Reason = "SkippedByAnnotation"
	ReasonPinnedByTag        Reason = "PinnedByTag"
	ReasonDeploymentPaused   Reason = "DeploymentPaused"
	ReasonOnDelete           Reason = "OnDelete"
	ReasonPartition          Reason = "Partition"
	ReasonInjectionOff       Reason = "InjectionOff"
	ReasonNamesRevision      Reason = "NamesRevision"
	ReasonChoosesAnother     Reason = "ChoosesAnother"
	ReasonUnknownRevision    Reason = "UnknownRevision"
	ReasonKindNotMoved       Reason = "KindNotMoved"
	ReasonInvalidAnnotation  Reason = "InvalidAnnotation"
	ReasonTimeout            Reason = "ReadinessTimeout"
	ReasonTimeoutCapped      Reason = "ReadinessTimeoutCapped"
	ReasonOverdue            Reason = "Overdue"
	ReasonProgressDeadline   Reason = "ProgressDeadlineExceeded"
	ReasonWrongRevision      Reason = "WrongRevision"
	ReasonWorkloadRestarting Reason = "Restarting"
)

// State sums the conditions up in one word: Healthy, or the reason that keeps it from being so.
type State string

// StateHealthy means that every condition is as it should be.
const StateHealthy State = "Healthy"
