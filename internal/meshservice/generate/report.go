package generate

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

// ReasonInvalidName is the reason of Generated for values of kuma.io/service that are not valid as names.
const ReasonInvalidName = "InvalidName"

// ReasonIgnored is the reason of the event on a HostnameGenerator outside the system namespace.
const ReasonIgnored = "Ignored"

// ReasonMalformed is the reason of the event on a pod with a malformed annotation.
const ReasonMalformed = "MalformedReachableBackends"

// Reasons of VIPs on a Mesh: values that cannot be recorded, and a missing namespace of the record.
const (
	ReasonInvalidValue = "InvalidValue"
	ReasonNoNamespace  = "NoNamespace"
)

// patchMeshStatus patches the status of a Mesh if it differs. The patch has an optimistic lock, since other controllers
// write the same list of conditions.
func (r *reconciler) patchMeshStatus(ctx context.Context, mesh *kumav1alpha1.Mesh, condition metav1.Condition, more func(*kumav1alpha1.MeshStatus)) error {
	now := mesh.DeepCopy()
	condition.ObservedGeneration = mesh.Generation
	meta.SetStatusCondition(&now.Status.Conditions, condition)
	more(&now.Status)
	if desired.Equal(mesh, now) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, now, optimisticLock(mesh), client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Mesh %s: %w", mesh.Name, err)
	}
	return nil
}

// patchPolicyStatus patches the status of a policy if it differs.
func (r *reconciler) patchPolicyStatus(ctx context.Context, there client.Object, resolved metav1.Condition) error {
	now := there.DeepCopyObject().(client.Object)
	status := statusOf(now)
	status.ObservedGeneration = there.GetGeneration()
	resolved.ObservedGeneration = there.GetGeneration()
	meta.SetStatusCondition(&status.Conditions, resolved)
	if desired.Equal(there, now) {
		return nil
	}
	err := r.client.Status().Patch(ctx, now, optimisticLock(there), client.FieldOwner(FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of %T %s: %w", now, client.ObjectKeyFromObject(now), err)
	}
	return nil
}

// patchStatus patches a status if it differs.
func (s *statuses) patchStatus(ctx context.Context, there, now client.Object) error {
	if desired.Equal(there, now) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, now, optimisticLock(there), client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of %s: %w", objectName(now), err)
	}
	return nil
}

// optimisticLock returns a merge patch with the observed resourceVersion: it replaces whole lists, which others write too.
func optimisticLock(there client.Object) client.Patch {
	return client.MergeFromWithOptions(there, client.MergeFromWithOptimisticLock{})
}

func setCondition(object client.Object, kind string, status metav1.ConditionStatus, reason, message string) {
	a, _ := addressableOf(object)
	meta.SetStatusCondition(a.conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: object.GetGeneration(),
	})
}

// tagsCondition reports values without a VIP.
func tagsCondition(outcome desired.Allocation, ranges desired.Ranges) metav1.Condition {
	switch {
	case len(outcome.Unallocated) > 0:
		return metav1.Condition{
			Type: kumav1alpha1.ConditionVIPs, Status: metav1.ConditionFalse, Reason: kumav1alpha1.ReasonRangeExhausted,
			Message: fmt.Sprintf("%s has no free address: %s of kuma.io/service without a VIP: %s; set a wider --mesh-tag-cidr (chart: mesh.tagCIDR), or remove unused values",
				ranges.Tags, countText(len(outcome.Unallocated), "value"), namesText(outcome.Unallocated)),
		}
	case len(outcome.Invalid) > 0:
		return metav1.Condition{
			Type: kumav1alpha1.ConditionVIPs, Status: metav1.ConditionFalse, Reason: ReasonInvalidValue,
			Message: fmt.Sprintf("%s of kuma.io/service not valid, so without a VIP: %s; use letters, digits, '-', '_' and '.' only",
				countText(len(outcome.Invalid), "value"), namesText(outcome.Invalid)),
		}
	default:
		return metav1.Condition{
			Type: kumav1alpha1.ConditionVIPs, Status: metav1.ConditionTrue, Reason: kumav1alpha1.ReasonAllocated,
			Message: "every value of kuma.io/service has a VIP",
		}
	}
}

// resolvedCondition reports the dangling references of a policy. In a Disabled mesh, references to MeshServices wait for
// them.
func resolvedCondition(findings []policy.Finding, mode kumav1alpha1.Mode) metav1.Condition {
	var wrong, waiting []string
	for _, f := range findings {
		if mode == kumav1alpha1.ModeDisabled && f.Generated {
			waiting = append(waiting, f.Field)
		} else {
			wrong = append(wrong, fmt.Sprintf("%s: %s; %s", f.Field, f.Problem, f.Remedy))
		}
	}
	c := metav1.Condition{Type: kumav1alpha1.ConditionResolved, Status: metav1.ConditionTrue, Reason: kumav1alpha1.ReasonResolved}
	switch {
	case len(wrong) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, kumav1alpha1.ReasonRefersToNothing, truncate(strings.Join(wrong, "\n"))
	case len(waiting) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, kumav1alpha1.ReasonDisabled
		c.Message = truncate("MeshServices are not generated while the mesh is Disabled: " + strings.Join(waiting, ", "))
	default:
		c.Message = "all references are resolved"
	}
	return c
}

// truncate bounds the message of a condition.
func truncate(message string) string {
	const most = 2000
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + "..."
}

func countText(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// namesText lists the first names.
func namesText(names []string) string {
	const enough = 5
	if len(names) <= enough {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ", "), len(names)-enough)
}

func objectName(object client.Object) string {
	kind := kumav1alpha1.MeshServiceKind
	if _, multiZone := object.(*kumav1alpha1.MeshMultiZoneService); multiZone {
		kind = kumav1alpha1.MeshMultiZoneServiceKind
	}
	return kind + " " + object.GetNamespace() + "/" + object.GetName()
}

// reportAnnotations reports malformed annotations of a pod.
func (p *pods) reportAnnotations(pod *corev1.Pod, problem error) {
	text := ""
	if problem != nil {
		text = problem.Error()
	}
	if p.events.IsNew(subjectOf("Pod", pod), text) {
		p.recorder.Eventf(pod, nil, corev1.EventTypeWarning, ReasonMalformed, "generate", "%s; the reachable backends of the pod stay unchanged", text)
	}
}
