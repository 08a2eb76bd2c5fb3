package v1

// Labels by which namespaces and pods choose their control plane.
const (
	// LabelRevision on a namespace or pod names the revision, or the tag, that injects its sidecars.
	LabelRevision = "istio.io/rev"
	// LabelTag on a webhook names the tag that it injects for.
	LabelTag = "istio.io/tag"
	// LabelInjection on a namespace chooses the revision or tag called "default", or switches injection off.
	LabelInjection = "istio-injection"
	// LabelSidecarInject on a pod switches injection on or off for this pod alone.
	LabelSidecarInject = "sidecar.istio.io/inject"
)

// Values of LabelInjection.
const (
	InjectionEnabled  = "enabled"
	InjectionDisabled = "disabled"
)

// DefaultRevision is the name that LabelInjection stands for. A revision of this name is installed without one.
const DefaultRevision = "default"

// AnnotationRevision is put on a pod by the injector: the revision, never the tag, that its sidecar came from.
const AnnotationRevision = "istio.io/rev"

// Annotations on a Deployment that change how it is migrated.
const (
	// AnnotationSkipMigration set to "true" keeps the workload where it is. On a namespace it keeps the label of the namespace
	// and all of its workloads.
	AnnotationSkipMigration = "sailoperator.io/skip-migration"
	// AnnotationReadinessTimeout replaces batched.readinessTimeout for this workload, up to batched.maxReadinessTimeout.
	AnnotationReadinessTimeout = "sailoperator.io/readiness-timeout"
	// AnnotationMigrationBatch is an integer priority from MinMigrationBatch to MaxMigrationBatch: lower ones migrate first.
	AnnotationMigrationBatch = "sailoperator.io/migration-batch"
)

// Bounds of AnnotationMigrationBatch.
const (
	MinMigrationBatch = -1000
	MaxMigrationBatch = 1000
)

// AnnotationMigration on a Deployment is what Fairlead remembers of having moved it: to which revision, when, in which
// batch, and why it did not get there.
const AnnotationMigration = "fairlead.dev/migration"

// AnnotationSkipInjectionCheck set to "true" on an Istio moves its workloads without a dry run that shows that they get their
// sidecars.
const AnnotationSkipInjectionCheck = "fairlead.dev/skip-injection-check"

// AnnotationRestartedAt in a pod template is how kubectl, and Fairlead, restart a workload.
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// Who writes, in the eyes of server-side apply: of control planes and tags, and of the workloads that move.
const (
	FieldOwner          = "fairlead/revision"
	FieldOwnerMigration = "fairlead/migration"
)

// LabelPassage with the value PassageRevision is on everything that is installed for a revision or a tag, and on the
// Helm releases that record it.
const (
	LabelPassage     = "fairlead.dev/passage"
	PassageRevision  = "revision"
	PassageMigration = "migration"
)

// AnnotationInactiveSince on an IstioRevision is when its Istio made another one the active one.
const AnnotationInactiveSince = "fairlead.dev/inactive-since"

// AnnotationAcceptChartDigest on an IstioRevision has the digests, separated by commas, of charts that may replace those that
// were first installed under the same version.
const AnnotationAcceptChartDigest = "fairlead.dev/accept-chart-digest"

// FinalizerUninstall keeps an IstioRevision or IstioRevisionTag until what was installed for it is gone.
const FinalizerUninstall = "fairlead.dev/uninstall"

// MaxRevisionNameLength is what the schema of IstioRevision allows: longer names do not fit istiod's Service and Helm
// release.
const MaxRevisionNameLength = 46

// Labels on the Secrets in which Helm records releases, so that the state of each is known from metadata alone.
const (
	// LabelFingerprint is a short hash of all that decides what a release installs.
	LabelFingerprint = "fairlead.dev/fingerprint"
	// LabelOwner is the kind and the name of the resource that a release belongs to.
	LabelOwner = "fairlead.dev/owner"
	// LabelChartVersion is the version of the chart, in the words of where it came from.
	LabelChartVersion = "fairlead.dev/chart-version"
	// LabelReplacesPrefix, followed by a namespace, is on a release that is installed in place of the one there. Its value is the UID
	// of the namespace.
	LabelReplacesPrefix = "replaces.fairlead.dev/"
)
