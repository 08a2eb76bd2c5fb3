package work

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// DeletionOf is what becomes of the objects of a Work that is being deleted, empty for any other.
func DeletionOf(o Observed) passage.Action {
	switch {
	case o.Work.DeletionTimestamp.IsZero():
		return ""
	case o.Cluster == nil || model.IsAbandoned(o.Cluster) || !isReachable(o) && isAbandoned(o.Binding):
		return model.ActionAbandon
	}
	return DeletionFor(o.Work, o.Cluster, o.Binding)
}

// DeletionFor is what becomes of the objects of a Work that is being deleted. A cluster that leaves the hub keeps what it runs,
// unless its Cluster asks for the opposite.
func DeletionFor(work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster, binding *model.Binding) passage.Action {
	switch {
	case work.Annotations[model.AnnotationRestore] == "true":
		return model.ActionRestore
	case work.Annotations[model.AnnotationKeep] == "true":
		return model.ActionKeep
	case cluster.DeletionTimestamp == nil && isWanted(binding, work, cluster.Name):
		return model.ActionKeep
	case cluster.DeletionTimestamp != nil && cluster.Annotations[model.AnnotationDeleteResources] != "true":
		return model.ActionOrphan
	case ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false):
		return model.ActionOrphan
	}
	return model.ActionDelete
}

// isAbandoned tells whether a binding says that the clusters that cannot be reached are gone for good.
func isAbandoned(binding *model.Binding) bool {
	return binding != nil && binding.GetAnnotations()[model.AnnotationAbandon] == "true"
}

// isReachable tells whether requests to the cluster of a Work can be expected to succeed.
func isReachable(o Observed) bool {
	return o.Connected && meta.IsStatusConditionTrue(o.Cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
}

// isWanted tells whether a binding is to have a Work in a cluster: then only the Work was deleted, and is created again.
func isWanted(binding *model.Binding, work *workv1alpha1.Work, cluster string) bool {
	return binding != nil && binding.GetDeletionTimestamp() == nil && model.IsTaken(binding) && string(binding.GetUID()) == work.Labels[model.LabelBinding] &&
		model.HasCluster(model.Targets(binding), cluster)
}

// release decides what becomes of an object whose Work is being deleted.
func release(o Observed, object Object, deletion passage.Action) (passage.Action, passage.Reason, *unstructured.Unstructured) {
	if object.Live == nil || object.Live.GetDeletionTimestamp() != nil || model.IdentityOf(o.Hub, object.Live).OwnershipOf(object.Live) != model.ManagedHere {
		return model.ActionNone, passage.Reason{}, nil
	}
	reason := passage.Because("Released", "the hub no longer manages the object")
	switch original := object.Original; {
	case deletion != model.ActionRestore:
		return deletion, reason, nil
	case original == nil:
		return model.ActionOrphan, reason, nil
	case original.GetUID() != object.Live.GetUID():
		return model.ActionOrphan, passage.Because("Recreated", "the object was created again since its takeover, and stays as it is"), nil
	default:
		return deletion, reason, restoredObject(original, object.Live, object.Autoscaled)
	}
}

// restoredObject is the original without the ownership labels, and with the labels and annotations that others have added since.
func restoredObject(original, live *unstructured.Unstructured, scaled bool) *unstructured.Unstructured {
	want := original.DeepCopy()
	if scaled {
		manifest.CopyField(want, live, "spec", "replicas")
	}
	labels, annotations := model.OwnedKeys(live)
	want.SetLabels(model.MergeKeys(original.GetLabels(), nil, model.MergeKeys(live.GetLabels(), append(labels, model.OwnershipLabels...))))
	want.SetAnnotations(model.MergeKeys(original.GetAnnotations(), nil, model.MergeKeys(live.GetAnnotations(), annotations)))
	manifest.CopyServerFields(want, live)
	return want
}
