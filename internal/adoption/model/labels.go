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

// What people, and `fairlead unjoin`, say about a Cluster that is being deleted.
const (
	// AnnotationDeleteResources set to "true" has all that Fairlead manages in the cluster deleted.
	AnnotationDeleteResources = "fairlead.dev/delete-resources"
	// AnnotationAbandon set to "true" has the cluster left as it is, marks and all, for it cannot be reached.
	AnnotationAbandon = "fairlead.dev/abandon"
)

// FinalizerCluster keeps a Cluster until all of its Works are gone.
const FinalizerCluster = "fairlead.dev/cluster"

// AnnotationAborted set to "true" on a policy has it release what it has taken over, put back what that was before, and take
// nothing any more.
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
	// AnnotationKeep set to "true" on a Work that is going has its object stay as it is, for there will be another Work.
	AnnotationKeep = "fairlead.dev/keep"
	// AnnotationReleased set to "true" on a binding that is going tells that nobody needs its resource any more.
	AnnotationReleased = "fairlead.dev/released"
	// AnnotationUndo set to "true" on a binding or a Work that is going has it put back what it took over.
	AnnotationUndo = "fairlead.dev/undo"
	// LabelUndo set to "true" marks the Secrets with what was there before.
	LabelUndo = "fairlead.dev/undo"
)
