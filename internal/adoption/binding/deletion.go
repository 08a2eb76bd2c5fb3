package binding

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// deletionPolicy is what becomes of objects whose Work is deleted: whether their originals are restored, and whether they stay.
// With keepWorks, the Works stay for the next binding.
type deletionPolicy struct {
	restore, preserve, keepWorks bool
}

// deletionAnnotations are those of Works that are deleted. One of an earlier deletion, which was interrupted and is no longer due, is
// removed.
var deletionAnnotations = []string{model.AnnotationRestore, model.AnnotationKeep}

// addDeletions plans what becomes of the Works of a binding that is being deleted.
func (d *Decision) addDeletions(o Observed) {
	policy, why := deletionPolicyOf(o)
	for _, work := range sortedWorks(o.Works) {
		if cluster, _ := model.ClusterOf(work.Namespace); policy.keepWorks && !model.IsRestoredIn(o.Binding, cluster) {
			// Until the next binding has the Work, somebody may delete that, too.
			kept := work.DeepCopy()
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, model.AnnotationKeep, "true")
			d.add(model.ActionKeep, why, kept)
			continue
		}
		d.addDeletion(o.Binding, work, policy, why)
	}
}

// AwaitsDependencies tells whether a binding whose policy is aborted stays until the originals of its dependencies are restored, too:
// the policy is aborted only then, and finds them by the binding.
func AwaitsDependencies(b *model.Binding, dependencies []*model.Binding) bool {
	return isRestored(b) && slices.ContainsFunc(dependencies, func(d *model.Binding) bool {
		return d.GetDeletionTimestamp() != nil && isRestored(d)
	})
}

// isRestored tells whether the originals of a binding that is being deleted are restored.
func isRestored(b *model.Binding) bool { return b.GetAnnotations()[model.AnnotationRestore] == "true" }

// KeepsAll tells whether a binding that is being deleted leaves all of its Works to the next one.
func (d Decision) KeepsAll() bool {
	return !slices.ContainsFunc(d.Steps, func(s Step) bool { return s.Action != model.ActionKeep })
}

// DecideUnbound plans the deletion of Works that no binding follows for. Each says itself whether its object stays, unless there is
// a template.
func DecideUnbound(works map[string]*workv1alpha1.Work, templateExists bool) Decision {
	var d Decision
	for _, work := range sortedWorks(works) {
		preserve := templateExists || ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false)
		d.deleteWork(work, deletionPolicy{preserve: preserve}, passage.Because(ReasonReleased, "the binding is deleted, and is not created again"))
	}
	return d
}

// deletionPolicyOf a binding that is being deleted. One that a user has deleted, while its template exists, deletes nothing: it
// is created again if a policy takes the template, and otherwise the objects are orphaned.
func deletionPolicyOf(o Observed) (deletionPolicy, passage.Reason) {
	preserve := model.IsPreserved(o.Binding)
	switch {
	case isRestored(o.Binding):
		return deletionPolicy{restore: true, preserve: preserve}, passage.Because(ReasonRestored, "the policy is aborted")
	case o.Binding.GetAnnotations()[model.AnnotationReleased] == "true" && o.Template == nil:
		return deletionPolicy{preserve: true}, passage.Because(ReasonReleased, "the template is deleted, and its objects stay")
	case o.Binding.GetAnnotations()[model.AnnotationReleased] == "true":
		return deletionPolicy{preserve: true}, passage.Because(ReasonReleased, "no resource requires the template any more")
	case o.Template == nil:
		return deletionPolicy{preserve: preserve}, protectedReason(o.Binding, passage.Because(ReasonReleased, "the template is deleted"))
	case model.IsTaken(o.Binding) && o.Binding.HasOwnName():
		// The Works know what was written: without them, a Job that has finished would run again.
		return deletionPolicy{keepWorks: true}, passage.Because(ReasonRecreated, "the binding is being deleted, and is created again")
	}
	return deletionPolicy{preserve: true}, passage.Because(ReasonReleased, "no policy takes the template")
}

// protectedReason also says that the object stays, and what to do, if it stays only because of deletionProtection.
func protectedReason(b *model.Binding, why passage.Reason) passage.Reason {
	if !model.IsProtected(b) {
		return why
	}
	return passage.Because(ReasonProtected, "%s, and %s stays: to have it deleted in clusters, set spec.deletionProtection of the policy to Disabled before", why.Message,
		model.TemplateOfBinding(b).Object())
}

// addDeletion plans to delete a Work, which says what becomes of its object: by the given policy, unless the binding has recorded
// that the original is restored in the cluster.
func (d *Decision) addDeletion(b *model.Binding, have *workv1alpha1.Work, p deletionPolicy, why passage.Reason) {
	if cluster, _ := model.ClusterOf(have.Namespace); model.IsRestoredIn(b, cluster) {
		p, why = deletionPolicy{restore: true, preserve: true}, passage.Because(ReasonRestored, "the policy of the resource that required the template in cluster %s is aborted", cluster)
	}
	d.deleteWork(have, p, why)
}

// deleteWork plans to delete a Work by a policy. An object that no policy has placed in the cluster, because another template
// required it, stays: which of the two templates goes first makes no difference.
func (d *Decision) deleteWork(have *workv1alpha1.Work, p deletionPolicy, why passage.Reason) {
	p.preserve = p.preserve || have.Annotations[model.AnnotationClaim] == model.PolicyKey{}.String()
	work := have.DeepCopy()
	work.Annotations = model.MergeKeys(have.Annotations, deletionAnnotations)
	if p.restore {
		metav1.SetMetaDataAnnotation(&work.ObjectMeta, model.AnnotationRestore, "true")
	}
	if p.preserve != ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) {
		work.Spec.PreserveResourcesOnDeletion = &p.preserve
	}
	d.add(model.ActionDelete, why, work)
}
