package model

// What Works carry.
const (
	// LabelBinding has the UID of the binding that a Work was made for.
	LabelBinding = "fairlead.dev/binding"
	// AnnotationBinding has where that is.
	AnnotationBinding = "fairlead.dev/binding"
	// AnnotationClaim has which policy took the resource to the cluster.
	AnnotationClaim = "fairlead.dev/claim"
)

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

// FinalizerExecution keeps a Work until what it has made in its cluster is gone, or released.
const FinalizerExecution = "karmada.io/execution-controller"

// What is known about the token in a Secret.
const (
	// AnnotationIssued has since when it is good.
	AnnotationIssued = "fairlead.dev/issued"
	// AnnotationExpires has until when.
	AnnotationExpires = "fairlead.dev/expires"
	// AnnotationAccount has the ServiceAccount in the cluster that it is one of.
	AnnotationAccount = "fairlead.dev/account"
)

const (
	// AnnotationKeep set to "true" on a Work that is being deleted leaves its object unchanged, because another Work follows.
	AnnotationKeep = "fairlead.dev/keep"
	// AnnotationReleased set to "true" on a binding that is being deleted tells that no resource requires its template any more.
	AnnotationReleased = "fairlead.dev/released"
	// AnnotationUndo set to "true" on a binding or a Work that is being deleted restores the originals of its objects.
	AnnotationUndo = "fairlead.dev/undo"
	// LabelUndo set to "true" marks the Secrets with originals.
	LabelUndo = "fairlead.dev/undo"
)
