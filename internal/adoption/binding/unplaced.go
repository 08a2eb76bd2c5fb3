package binding

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// ReasonNotReplaced is for a Work in a cluster that the template no longer goes to, which stays until the template is applied in
// the clusters that it goes to instead.
const ReasonNotReplaced passage.Code = "NotReplaced"

func unplacedWorks(o Observed) map[string]*workv1alpha1.Work {
	targets, unplaced := model.Targets(o.Binding), maps.Clone(o.Works)
	maps.DeleteFunc(unplaced, func(cluster string, _ *workv1alpha1.Work) bool { return model.HasCluster(targets, cluster) })
	return unplaced
}

// addUnplaced plans the deletion of the Works in clusters that the template no longer goes to. While the policy suspends dispatching
// they stay, and those whose objects would be deleted also until the template is applied in all awaited clusters: nothing is
// deleted that is not running elsewhere. What is restored waits for neither.
func (d *Decision) addUnplaced(o Observed, awaited []string, preserved func(*workv1alpha1.Work) bool) {
	suspended := model.IsTaken(o.Binding) && o.Binding.Spec.Suspension != nil && ptr.Deref(o.Binding.Spec.Suspension.Dispatching, false)
	keeps := func(deleted *workv1alpha1.Work) bool {
		if !deleted.DeletionTimestamp.IsZero() || deleted.Annotations[model.AnnotationRestore] == "true" {
			return false
		}
		return suspended || len(awaited) > 0 && !ptr.Deref(deleted.Spec.PreserveResourcesOnDeletion, false)
	}
	why := func(clusters ...string) passage.Reason {
		if suspended {
			return passage.Because(model.ReasonSuspended, "the placement no longer selects %s, and the object there stays while the policy suspends dispatching", listClusters(clusters))
		}
		return passage.Because(ReasonNotReplaced, "the placement no longer selects %s, and the object there stays until %s is applied in %s",
			listClusters(clusters), model.TemplateOfBinding(o.Binding).Object(), listClusters(awaited))
	}
	var kept []string
	for _, work := range sortedWorks(unplacedWorks(o)) {
		cluster, _ := model.ClusterOf(work.Namespace)
		d.addDeletion(o.Binding, work, deletionPolicy{preserve: preserved(work)},
			protectedReason(o.Binding, passage.Because(ReasonNotPlaced, "the placement no longer selects cluster %s", cluster)))
		deletion := d.Steps[len(d.Steps)-1]
		if !keeps(deletion.Work) {
			continue
		}
		kept = append(kept, cluster)
		d.Steps = d.Steps[:len(d.Steps)-1]
		if suspension := suspensionIn(o.Binding, cluster); ptr.Deref(suspension, false) != ptr.Deref(work.Spec.SuspendDispatching, false) {
			work = work.DeepCopy()
			work.Spec.SuspendDispatching = suspension
			d.add(model.ActionUpdate, why(cluster), work)
		} else {
			d.add(model.ActionWait, why(cluster), work)
		}
		d.Steps[len(d.Steps)-1].Deletion = &Deletion{Step: deletion}
		if !suspended {
			d.Steps[len(d.Steps)-1].Deletion.Awaited = awaited
		}
	}
	if len(kept) > 0 {
		reason := why(kept...)
		d.Kept = &reason
	}
}

// awaitedClusters are those of the planned steps that have never had the object; if the replicas are divided, also those that do not
// have their share yet.
func (d *Decision) awaitedClusters(o Observed, divided bool) []string {
	var all []string
	for _, step := range d.Steps {
		have := o.Works[step.Object.Cluster]
		if have == nil || !have.DeletionTimestamp.IsZero() || (divided || len(have.Status.ManifestStatuses) == 0) && !(step.Action == model.ActionNone && isApplied(have)) {
			all = append(all, step.Object.Cluster)
		}
	}
	return all
}

// isApplied tells whether a Work is applied as it is.
func isApplied(work *workv1alpha1.Work) bool {
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	return applied != nil && applied.Status == "True" && applied.ObservedGeneration >= specGeneration(work)
}

// maxListed is how many clusters a message names.
const maxListed = 3

func listClusters(names []string) string {
	switch n := len(names); {
	case n == 1:
		return "cluster " + names[0]
	case n <= maxListed:
		return "clusters " + strings.Join(names, ", ")
	default:
		return fmt.Sprintf("clusters %s and %d more", strings.Join(names[:maxListed], ", "), n-maxListed)
	}
}
