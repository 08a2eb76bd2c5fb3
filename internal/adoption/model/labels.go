package model

// Labels and annotations of Works.
const (
	// LabelBinding has the UID of the binding of a Work.
	LabelBinding = "fairlead.dev/binding"
	// AnnotationBinding has the namespace and name of the binding.
	AnnotationBinding = "fairlead.dev/binding"
	// AnnotationClaim has the policy that places the object in the cluster.
	AnnotationClaim = "fairlead.dev/claim"
)

// AnnotationAffinity on a binding has the group of spec.placement.clusterAffinities that is used.
const AnnotationAffinity = "fairlead.dev/affinity"

// AnnotationUnmet set to "true" on a binding tells that the clusters do not meet spec.placement.spreadConstraints.
const AnnotationUnmet = "fairlead.dev/spread-unmet"

// AnnotationUnsupported on a binding has the fields of its policy that Fairlead does not support, separated by commas.
const AnnotationUnsupported = "fairlead.dev/unsupported-fields"

// FinalizerBinding keeps a binding until its Works are gone.
const FinalizerBinding = "karmada.io/binding-controller"

// What users, and `fairlead unjoin`, set on a Cluster that is being deleted.
const (
	// AnnotationDeleteResources set to "true" deletes all objects that Fairlead manages in the cluster.
	AnnotationDeleteResources = "fairlead.dev/delete-resources"
	// AnnotationAbandon set to "true" leaves the cluster unchanged, labels included, because it cannot be reached.
	AnnotationAbandon = "fairlead.dev/abandon"
)

// FinalizerCluster keeps a Cluster until all of its Works are gone.
const FinalizerCluster = "fairlead.dev/cluster"

// AnnotationAborted set to "true" on a policy releases its resources, restores their originals, and takes no further resources.
const AnnotationAborted = "fairlead.dev/aborted"

// FinalizerExecution keeps a Work until its object is deleted or released.
const FinalizerExecution = "karmada.io/execution-controller"

// Annotations of a Secret with the token of a cluster.
const (
	// AnnotationIssued has the time when the token was issued.
	AnnotationIssued = "fairlead.dev/issued"
	// AnnotationExpires has the time when the token expires.
	AnnotationExpires = "fairlead.dev/expires"
	// AnnotationAccount has the ServiceAccount of the token, in the cluster.
	AnnotationAccount = "fairlead.dev/account"
)

const (
	// AnnotationKeep set to "true" on a Work that is being deleted leaves its object unchanged, because another Work follows.
	AnnotationKeep = "fairlead.dev/keep"
	// AnnotationReleased set to "true" on a binding that is being deleted tells that no resource requires its template any more.
	AnnotationReleased = "fairlead.dev/released"
	// AnnotationRestore set to "true" on a binding or a Work that is being deleted restores the originals of its objects.
	AnnotationRestore = "fairlead.dev/undo"
	// LabelRestore set to "true" marks the Secrets with the originals that can be restored.
	LabelRestore = "fairlead.dev/undo"
)
