package istio

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
)

// defaultTagSteps keep the tag "default" of an Istio that asks for it, and delete the tag when it no longer does.
func defaultTagSteps(o Observed, target string) []passage.Step {
	tag := o.DefaultTag
	if !o.Istio.Spec.UpdateStrategy.DefaultTag {
		if tag == nil || !metav1.IsControlledBy(tag, o.Istio) || !tag.DeletionTimestamp.IsZero() {
			return nil
		}
		return []passage.Step{deleteDefaultTag(o)}
	}
	if target == v1.DefaultRevision || tag != nil && metav1.GetControllerOf(tag) == nil && tag.Spec == desiredDefaultTag(o.Istio).Spec {
		return nil // the name leads to the active revision already: the user's own tag needs no other owner
	}
	step := passage.Step{
		Object: object(v1.IstioRevisionTagKind, v1.DefaultRevision),
		Action: ActionCreate,
		To:     target,
		State:  passage.Pending,
	}
	revision, owner := o.revision(v1.DefaultRevision), (*metav1.OwnerReference)(nil)
	if tag != nil {
		owner = metav1.GetControllerOf(tag)
	}
	switch {
	case tag == nil && revision != nil:
		step.State = passage.Failed
		step.Reason = passage.Because(v1.ReasonNameAlreadyExists, "the tag that spec.updateStrategy.defaultTag asks for is not created: "+
			"the name is used by IstioRevision %s%s; delete that revision, or take defaultTag back",
			revision.Name, describeUsers(o, revision.Name))
	case tag == nil:
		step.Reason = passage.Because(v1.ReasonTagMissing, "spec.updateStrategy.defaultTag of Istio %s asks for the tag", o.Istio.Name)
	case isIstio(owner) && owner.Name == o.Istio.Name && owner.UID != o.Istio.UID:
		step.State = passage.Running
		step.Reason = passage.Because(v1.ReasonNameInDeletion,
			"IstioRevisionTag %s belongs to a deleted Istio %s, and is created again when the old tag is gone", tag.Name, owner.Name)
	case !metav1.IsControlledBy(tag, o.Istio):
		step.State = passage.Failed
		step.Reason = passage.Because(v1.ReasonNameAlreadyExists, "IstioRevisionTag %s exists, follows %s %s and was not made by Istio %s; "+
			"delete the tag, or take spec.updateStrategy.defaultTag back", tag.Name, tag.Spec.TargetRef.Kind, tag.Spec.TargetRef.Name, o.Istio.Name)
	case !tag.DeletionTimestamp.IsZero():
		step.State = passage.Running
		step.Reason = passage.Because(v1.ReasonNameInDeletion,
			"IstioRevisionTag %s is being deleted, and is created again when the deletion has finished", tag.Name)
	case tag.Spec != desiredDefaultTag(o.Istio).Spec:
		step.Action = ActionUpdate
		step.Reason = passage.Because(v1.ReasonTagDiffers, "the tag belongs to Istio %s, and spec.targetRef names %s %s",
			o.Istio.Name, tag.Spec.TargetRef.Kind, tag.Spec.TargetRef.Name)
	default:
		return nil
	}
	return []passage.Step{step}
}

// deleteDefaultTag deletes the tag unless it is in use: pods that are created with its name would get no sidecar.
func deleteDefaultTag(o Observed) passage.Step {
	step := passage.Step{
		Object: object(v1.IstioRevisionTagKind, v1.DefaultRevision),
		Action: ActionDelete,
		From:   o.DefaultTag.Status.IstioRevision,
		State:  passage.Later,
	}
	switch uses := o.Usage.Tag(v1.DefaultRevision); {
	case !uses.Known():
		step.Reason = passage.Because(v1.ReasonUsageCheckFailed,
			"kept while its users are unknown: the API server refuses to list %s", strings.Join(uses.Forbidden, " and "))
	case uses.Used():
		step.Reason = passage.Because(v1.ReasonRevisionInUse, "no longer asked for; kept while in use by %s", uses)
	default:
		step.State = passage.Pending
		step.Reason = passage.Because(v1.ReasonTagNotAskedFor,
			"spec.updateStrategy.defaultTag of Istio %s does not ask for the tag any more, and nothing uses the tag", o.Istio.Name)
	}
	return step
}

func describeUsers(o Observed, revision string) string {
	if uses := o.Usage.Revision(revision); uses.Used() {
		return " (in use by " + uses.String() + ")"
	}
	return ""
}

// desiredDefaultTag is the tag that an Istio asks for.
func desiredDefaultTag(istio *v1.Istio) *v1.IstioRevisionTag {
	return &v1.IstioRevisionTag{
		ObjectMeta: metav1.ObjectMeta{Name: v1.DefaultRevision, OwnerReferences: []metav1.OwnerReference{ownerReference(istio)}},
		Spec:       v1.IstioRevisionTagSpec{TargetRef: v1.TargetReference{Kind: v1.IstioKind, Name: istio.Name}},
	}
}
