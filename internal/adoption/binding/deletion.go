package binding

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// deletionPolicy is what becomes of objects whose Work is deleted: an annotation for the Work, and whether they stay.
type deletionPolicy struct {
	annotation string
	preserve   bool
}

// deletionAnnotations are those of policies. One of an earlier deletion, which was interrupted and is no longer due, is removed.
var deletionAnnotations = []string{model.AnnotationRestore, model.AnnotationKeep}

// deletionPolicyOf a binding that is being deleted. One that a user has deleted, while its template exists, deletes nothing: it
// is created again if a policy takes the template, and otherwise the objects are orphaned.
func deletionPolicyOf(o Observed) (deletionPolicy, passage.Reason) {
	preserve := model.IsPreserved(o.Binding)
	annotations := o.Binding.GetAnnotations()
	switch {
	case annotations[model.AnnotationRestore] == "true":
		return deletionPolicy{model.AnnotationRestore, preserve}, passage.Because(ReasonRestored, "the policy is aborted")
	case annotations[model.AnnotationReleased] == "true":
		return deletionPolicy{"", true}, passage.Because(ReasonReleased, "no resource requires the template any more")
	case o.Template == nil:
		return deletionPolicy{"", preserve}, protectedReason(o.Binding, passage.Because(ReasonReleased, "the template is deleted"))
	case model.IsTaken(o.Binding):
		return deletionPolicy{model.AnnotationKeep, preserve}, passage.Because(ReasonRecreated, "the binding is being deleted, and is created again")
	}
	return deletionPolicy{"", true}, passage.Because(ReasonReleased, "no policy takes the template")
}

// protectedReason also says that the object stays, and what to do, if it stays only because of deletionProtection.
func protectedReason(b *model.Binding, why passage.Reason) passage.Reason {
	if !model.IsProtected(b) {
		return why
	}
	return passage.Because(ReasonProtected, "%s, and %s stays: to have it deleted in clusters, set spec.deletionProtection of the policy to Disabled before", why.Message,
		model.TemplateOfBinding(b).Object())
}

// addDeletion plans to delete a Work, which says what becomes of its object: by the given policy, unless the
// binding has recorded that the original is restored in the cluster. An object that no policy has placed there, because another
// template required it, stays: which of the two templates goes first makes no difference.
func (d *Decision) addDeletion(b *model.Binding, have *workv1alpha1.Work, p deletionPolicy, why passage.Reason) {
	if cluster, _ := model.ClusterOf(have.Namespace); model.IsRestoredIn(b, cluster) {
		p, why = deletionPolicy{model.AnnotationRestore, true}, passage.Because(ReasonRestored, "the policy of the resource that required the template in cluster %s is aborted", cluster)
	}
	p.preserve = p.preserve || have.Annotations[model.AnnotationClaim] == model.PolicyKey{}.String()
	work := have.DeepCopy()
	work.Annotations = model.MergeKeys(have.Annotations, deletionAnnotations)
	if p.annotation != "" {
		metav1.SetMetaDataAnnotation(&work.ObjectMeta, p.annotation, "true")
	}
	if p.preserve != ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) {
		work.Spec.PreserveResourcesOnDeletion = &p.preserve
	}
	d.add(model.ActionDelete, why, work)
}
