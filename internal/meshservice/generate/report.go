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
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/policy"
)

// ReasonIgnored is the reason of the event on a HostnameGenerator outside the system namespace.
const ReasonIgnored = "Ignored"

// ReasonMalformed is the reason of the event on a pod with a malformed annotation.
const ReasonMalformed = "MalformedReachableBackends"

// Reasons of VIPs on a Mesh: values that cannot be recorded, and a missing namespace of the record.
const (
	ReasonInvalidValue = "InvalidValue"
	ReasonNoNamespace  = "NoNamespace"
)

// applyPolicyStatus applies the status of a policy if it differs.
func (r *reconciler) applyPolicyStatus(ctx context.Context, there policy.Policy, resolved metav1.Condition) error {
	before := there.PolicyStatus()
	now := before.DeepCopy()
	now.ObservedGeneration, resolved.ObservedGeneration = there.GetGeneration(), there.GetGeneration()
	meta.SetStatusCondition(&now.Conditions, resolved)
	now.Columns = desired.PolicyColumns(there)
	own := kumav1alpha1.PolicyStatus{
		ObservedGeneration: now.ObservedGeneration, Columns: now.Columns,
		Conditions: []metav1.Condition{*meta.FindStatusCondition(now.Conditions, resolved.Type)},
	}
	return applyStatus(ctx, r.client, there, *before, own, *now)
}

// applyStatus applies the own part of a status if the whole differs.
func applyStatus[S any](ctx context.Context, c client.Client, there client.Object, before, own, now S) error {
	if desired.Equal(before, now) {
		return nil
	}
	kind := kumav1alpha1.GroupVersion.WithKind(model.KindOf(there))
	return client.IgnoreNotFound(kube.ApplyStatusPart(ctx, c, kind, there, own, now, FieldOwner))
}

func setCondition(object addressable, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&object.ServiceStatus().Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: truncate(message), ObservedGeneration: object.GetGeneration(),
	})
}

// vipsCondition reports values without a VIP. The share is that of one namespace.
func vipsCondition(outcome desired.Allocation, ranges desired.Ranges, share int) metav1.Condition {
	c := metav1.Condition{Type: kumav1alpha1.ConditionVIPs, Status: metav1.ConditionFalse}
	switch {
	case len(outcome.Unallocated) > 0:
		c.Reason = kumav1alpha1.ReasonRangeExhausted
		c.Message = fmt.Sprintf("%s has no free address: %s of kuma.io/service without a VIP: %s; set a wider --mesh-tag-cidr (chart: mesh.tagCIDR), or remove unused values",
			ranges.Tags, countText(len(outcome.Unallocated), "value"), namesText(outcome.Unallocated))
	case len(outcome.Invalid) > 0:
		c.Reason = ReasonInvalidValue
		c.Message = fmt.Sprintf("%s of kuma.io/service not valid, so without a VIP: %s; use letters, digits, '-', '_' and '.' only",
			countText(len(outcome.Invalid), "value"), namesText(outcome.Invalid))
	case len(outcome.OverShare) > 0:
		c.Reason = kumav1alpha1.ReasonShareExhausted
		c.Message = fmt.Sprintf("a namespace may have %d VIPs: %s of kuma.io/service without a VIP: %s; set a higher --mesh-namespace-vips (chart: mesh.namespaceVIPs), or remove unused values",
			share, countText(len(outcome.OverShare), "value"), namesText(outcome.OverShare))
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, kumav1alpha1.ReasonAllocated, "every value of kuma.io/service has a VIP"
	}
	return c
}

// resolvedCondition reports the dangling references of a policy. In a Disabled mesh, references to MeshServices wait for
// them.
func resolvedCondition(findings []policy.Finding, mode kumav1alpha1.Mode) metav1.Condition {
	var wrong, waiting []string
	reason := kumav1alpha1.ReasonTooLarge
	for _, f := range findings {
		if mode == kumav1alpha1.ModeDisabled && f.Generated {
			waiting = append(waiting, f.Field)
		} else {
			if !f.ExceedsLimit {
				reason = kumav1alpha1.ReasonRefersToNothing
			}
			wrong = append(wrong, fmt.Sprintf("%s: %s; %s", f.Field, f.Problem, f.Remedy))
		}
	}
	c := metav1.Condition{Type: kumav1alpha1.ConditionResolved, Status: metav1.ConditionTrue, Reason: kumav1alpha1.ReasonResolved}
	switch {
	case len(wrong) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, truncate(strings.Join(wrong, "\n"))
	case len(waiting) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, kumav1alpha1.ReasonDisabled
		c.Message = truncate("MeshServices are not generated while the mesh is Disabled: " + strings.Join(waiting, ", "))
	default:
		c.Message = "all references are resolved"
	}
	return c
}

// maxEvent bounds the text of an event; the API server takes 1024 bytes.
const maxEvent = 1000

// truncate bounds the message of a condition.
func truncate(message string) string { return truncateTo(message, 2000) }

func truncateTo(message string, most int) string {
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

// namesText lists the first names, of which tenants choose some at any length.
func namesText(names []string) string {
	const enough, longest = 5, 253
	var first []string
	for _, name := range names[:min(enough, len(names))] {
		first = append(first, truncateTo(name, longest))
	}
	text := strings.Join(first, ", ")
	if more := len(names) - len(first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// maxRefusals bounds the refusals of an event.
const maxRefusals = 2

// refusalsText lists the first refusals of a Dataplane.
func refusalsText(refusals []desired.Refusal) string {
	var lines []string
	for _, one := range refusals[:min(maxRefusals, len(refusals))] {
		lines = append(lines, one.Field+": "+one.Message)
	}
	if more := len(refusals) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

func objectName(object client.Object) string {
	return model.KindOf(object) + " " + client.ObjectKeyFromObject(object).String()
}

// warnOnce records a warning about an object, unless it repeats the last one. An empty text forgets that.
func (r *reconciler) warnOnce(object client.Object, reason, action, text string) {
	if r.events.IsNew(subjectOf(object), text) {
		r.recorder.Eventf(object, nil, corev1.EventTypeWarning, reason, action, "%s", truncateTo(text, maxEvent))
	}
}
