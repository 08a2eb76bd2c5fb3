package model

import (
	"encoding/json"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// Labels and annotations of Works.
const (
	// LabelBinding has the UID of the binding of a Work.
	LabelBinding = "fairlead.dev/binding"
	// AnnotationBinding has the namespace and name of the binding.
	AnnotationBinding = "fairlead.dev/binding"
	// AnnotationTemplateVersion has the version of the template that a Work was made from, as status.templateVersion of its binding.
	AnnotationTemplateVersion = "fairlead.dev/template-version"
	// AnnotationClaim has the policy that places the object in the cluster.
	AnnotationClaim = "fairlead.dev/claim"
)

// AnnotationFinished on a Work that replaces a deleted one has the ManifestStatus of its object, as JSON, if that has finished: a Job
// does not run again because somebody has deleted its Work.
const AnnotationFinished = "fairlead.dev/finished"

// FinishedBefore is the status of the object of a Work, if it has finished for an earlier Work; nil otherwise.
func FinishedBefore(work *workv1alpha1.Work) *workv1alpha1.ManifestStatus {
	text, found := work.Annotations[AnnotationFinished]
	if !found {
		return nil
	}
	status := &workv1alpha1.ManifestStatus{}
	if json.Unmarshal([]byte(text), status) != nil {
		return nil
	}
	return status
}

// AnnotationAffinity on a binding has the group of spec.placement.clusterAffinities that is used.
const AnnotationAffinity = "fairlead.dev/affinity"

// AnnotationUnmet set to "true" on a binding tells that the clusters do not meet spec.placement.spreadConstraints.
const AnnotationUnmet = "fairlead.dev/spread-unmet"

// AnnotationUntolerated on a binding has the clusters, separated by commas, that the resource stays in though they have a NoExecute
// taint which its policy does not tolerate.
const AnnotationUntolerated = "fairlead.dev/untolerated-clusters"

// Annotations of a binding whose replicas are divided by the room that clusters report.
const (
	// AnnotationNoRoom has how many replicas the clusters have no room for.
	AnnotationNoRoom = "fairlead.dev/replicas-without-room"
	// AnnotationNotReported has the clusters, separated by commas, that have not reported their room.
	AnnotationNotReported = "fairlead.dev/clusters-without-report"
)

// Annotations of a binding whose policy has activationPreference: Lazy.
const (
	// AnnotationActivated has the TemplateVersion of the template with which the policy last took effect.
	AnnotationActivated = "fairlead.dev/activated-version"
	// AnnotationDeferred set to "true" tells that the policy takes effect when the template changes.
	AnnotationDeferred = "fairlead.dev/deferred"
)

// AnnotationUnsupported on a binding has the fields of its policy that Fairlead does not support, separated by commas.
const AnnotationUnsupported = "fairlead.dev/unsupported-fields"

// FinalizerBinding keeps a binding until its Works are gone.
const FinalizerBinding = "karmada.io/binding-controller"

// What users, and `fairlead unjoin`, set on a Cluster that is being deleted.
const (
	// AnnotationDeleteResources set to "true" deletes all objects that Fairlead manages in the cluster.
	AnnotationDeleteResources = "fairlead.dev/delete-resources"
	// AnnotationAbandon set to "true" leaves the cluster unchanged, labels included, because it cannot be reached. On a binding, it
	// releases the Works that are being deleted in clusters that cannot be reached, for these are gone for good.
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
	// AnnotationKeep set to "true" on a Work leaves its object unchanged if the Work is deleted, because another binding follows.
	AnnotationKeep = "fairlead.dev/keep"
	// AnnotationReleased set to "true" on a binding that is being deleted tells that no resource requires its template any more, or
	// that the objects of a template that is gone stay.
	AnnotationReleased = "fairlead.dev/released"
	// AnnotationRestore set to "true" on a binding or a Work that is being deleted restores the originals of its objects.
	AnnotationRestore = "fairlead.dev/undo"
	// LabelRestore set to "true" marks the Secrets with the originals that can be restored.
	LabelRestore = "fairlead.dev/undo"
)
