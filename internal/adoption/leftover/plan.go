package leftover

import (
	"fmt"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// AnnotationLeftovers on a Cluster says what becomes of leftovers there: ReleaseLeftovers or DeleteLeftovers. Without it, they are
// reported and stay as they are: the hub may have been restored from a backup, and know less than the labels.
const AnnotationLeftovers = "fairlead.dev/leftovers"

// The values of the annotation.
const (
	// ReleaseLeftovers removes the labels of the hub.
	ReleaseLeftovers = "Release"
	// DeleteLeftovers deletes the objects.
	DeleteLeftovers = "Delete"
)

// ReasonLeftovers is the reason of the event about leftovers.
const ReasonLeftovers passage.Code = "Leftovers"

// Observed is an object of a cluster with the labels of this hub, and what the hub knows of it.
type Observed struct {
	// Managed holds when the labels are those of this hub, and meant for the object.
	Managed bool
	// Protected holds for kinds whose deletion deletes more than the object: they are released instead.
	Protected bool
	// HasWork holds when a Work of the cluster has the object.
	HasWork bool
	// Binding is that of the object, nil if there is none.
	Binding *model.Binding
	Cluster *clusterv1alpha1.Cluster
}

// Decide what becomes of an object. One of which the hub has a Work, or is about to have one, is none of its business.
func Decide(o Observed) (passage.Action, passage.Reason) {
	switch {
	case !o.Managed || o.HasWork || o.Cluster.DeletionTimestamp != nil:
		return model.ActionNone, passage.Reason{}
	case o.Binding != nil && o.Binding.GetDeletionTimestamp() != nil:
		return model.ActionWait, passage.Because("BeingDeleted", "%s is being deleted", o.Binding)
	case o.Binding != nil && model.IsTaken(o.Binding) && model.HasCluster(model.Targets(o.Binding), o.Cluster.Name):
		return model.ActionWait, passage.Because("Placed", "%s goes to cluster %s, and gets a Work there", o.Binding, o.Cluster.Name)
	}
	asked := o.Cluster.Annotations[AnnotationLeftovers]
	why := passage.Because(ReasonLeftovers, "the hub has no Work for the object, and annotation %s of Cluster %s is %s", AnnotationLeftovers, o.Cluster.Name, asked)
	switch asked {
	case ReleaseLeftovers:
		return model.ActionOrphan, why
	case DeleteLeftovers:
		if o.Protected {
			return model.ActionOrphan, why
		}
		return model.ActionDelete, why
	}
	return model.ActionLeave, passage.Because(ReasonLeftovers, "the hub has no Work for the object")
}

// summarize is what is said of the leftovers that stay in a cluster, of which the first is named.
func summarize(cluster string, left int, first passage.Object) string {
	subject := "1 object has"
	if left != 1 {
		subject = fmt.Sprintf("%d objects have", left)
	}
	first.Cluster = ""
	return fmt.Sprintf("%s the labels of this hub in cluster %s and no Work on the hub, the first: %s; create the resource and its policy on the hub again, "+
		"or annotate Cluster %s with %s: %s to remove the labels, or %s: %s to delete the objects",
		subject, cluster, first, cluster, AnnotationLeftovers, ReleaseLeftovers, AnnotationLeftovers, DeleteLeftovers)
}
