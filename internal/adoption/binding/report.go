package binding

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

// gatherInterval is how long the first results of several clusters are waited for, so that they make one status.
const gatherInterval = 20 * time.Second

// AggregateStatus is the status of a binding by the statuses of its Works, and after how long to ask again if several clusters have
// yet to answer.
func AggregateStatus(binding *model.Binding, works map[string]*workv1alpha1.Work, from Source, now time.Time) (workv1alpha2.ResourceBindingStatus, time.Duration) {
	status := *binding.Status.DeepCopy()
	status.ObservedGeneration, status.TemplateVersion = binding.GetGeneration(), from.Version
	status.AggregatedStatus = nil
	status.SchedulerObservedAffinityName = model.AffinityOf(binding)
	tell := func(kind string, is metav1.ConditionStatus, reason passage.Reason) {
		model.SetCondition(&status.Conditions, kind, is, reason, binding.GetGeneration(), now)
	}
	clusters := model.Targets(binding)
	untaken := notTaken(binding, works)
	notScheduled := cmp.Or(from.Refused, policy.UnsupportedInBinding(binding), untaken, model.NoClusterReason(binding))
	if notScheduled != nil {
		tell(workv1alpha2.ConditionScheduled, metav1.ConditionFalse, *notScheduled)
	} else {
		message := fmt.Sprintf("scheduled to %d clusters", len(clusters))
		if deferred := model.DeferredReason(binding); deferred != nil {
			message += "; " + deferred.Message
		}
		if note := model.UntoleratedNote(binding); note != "" {
			message += "; " + note
		}
		tell(workv1alpha2.ConditionScheduled, metav1.ConditionTrue, passage.Because(model.ReasonScheduled, "%s", message))
	}
	applied, waiting := 0, 0
	var first *metav1.Condition
	for _, target := range clusters {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: target.Name, Health: workv1alpha2.ResourceUnknown}
		work := works[target.Name]
		var condition *metav1.Condition
		if work != nil {
			condition = meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
		}
		switch {
		case condition == nil || condition.ObservedGeneration < specGeneration(work):
			waiting++
			reason := NotWritten(target.Name)
			if work == nil && untaken != nil {
				reason = *untaken
			}
			item.Reason, item.AppliedMessage = string(reason.Code), reason.Message
			if before := finishedBefore(work); before != nil {
				item.Reason, item.Status, item.Health = string(model.ReasonFinished), before.Status, workv1alpha2.ResourceHealth(before.Health)
			}
		case condition.Status == metav1.ConditionTrue:
			applied++
			item.Applied = true
		default:
			item.Reason, item.AppliedMessage = condition.Reason, condition.Message
			if first == nil {
				first = condition
			}
		}
		if work != nil && len(work.Status.ManifestStatuses) > 0 {
			said := work.Status.ManifestStatuses[0]
			item.Status, item.Health = said.Status, workv1alpha2.ResourceHealth(said.Health)
		}
		status.AggregatedStatus = append(status.AggregatedStatus, item)
	}
	boundItems(status.AggregatedStatus, binding.Spec.Resource.Kind)
	if notScheduled != nil {
		tell(workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse, *notScheduled)
		return status, 0
	}
	before := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionFullyApplied)
	isReported := before != nil && passage.Code(before.Reason) != model.ReasonNoCluster
	if left := gatherInterval - now.Sub(binding.GetCreationTimestamp().Time); waiting > 0 && left > 0 && !isReported {
		return status, left
	}
	note := ""
	if from.AnnotationErr != nil {
		note = "; " + from.AnnotationErr.Error()
	}
	if from.Kept != nil {
		note += "; " + from.Kept.Message
	}
	if model.IsProtected(binding) {
		note += "; the object stays in clusters when the template is deleted, because spec.deletionProtection of the policy is not Disabled"
	}
	switch total := len(clusters); {
	case applied == total:
		tell(workv1alpha2.ConditionFullyApplied, metav1.ConditionTrue, passage.Because(model.ReasonFullyApplied, "applied in %s%s", describeClusters(clusters), note))
	case first != nil:
		code := model.ReasonNotApplied
		if reason := passage.Code(first.Reason); reason == model.ReasonConflict || reason == model.ReasonSuspended {
			code = reason
		}
		tell(workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse, passage.Because(code, "applied in %d of %d clusters; %s%s", applied, total, first.Message, note))
	default:
		tell(workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse, passage.Because(model.ReasonApplying, "applied in %d of %d clusters%s", applied, total, note))
	}
	return status, 0
}

// specGeneration is the generation of the spec of a Work. The API server counts the deletion of an object as one more.
func specGeneration(work *workv1alpha1.Work) int64 {
	if work.DeletionTimestamp.IsZero() {
		return work.Generation
	}
	return work.Generation - 1
}

// Bounds of what all items of a status have: with a status and a message for each of some hundred clusters, a binding would not fit
// into the store of the hub.
const (
	maxItemStatuses = 256 << 10
	maxItemMessages = 128 << 10
)

// seeWork stands for the messages that are left out.
const seeWork = "see the condition Applied of the Work of this cluster"

// boundItems leaves out statuses and messages beyond the bounds. Every cluster keeps its item, with the reason, and that of a Job or
// Pod what tells whether it has finished: recordFinished needs it.
func boundItems(items []workv1alpha2.AggregatedStatusItem, kind string) {
	statuses, messages := 0, 0
	for i := range items {
		item := &items[i]
		if item.Status != nil {
			if statuses += len(item.Status.Raw); statuses > maxItemStatuses {
				statuses -= len(item.Status.Raw)
				item.Status = essentialStatus(item.Status, kind)
			}
		}
		if messages += len(item.AppliedMessage); messages > maxItemMessages && item.AppliedMessage != "" {
			messages -= len(item.AppliedMessage)
			item.AppliedMessage = seeWork
		}
	}
}

// essentialStatus is the phase of a Job or Pod and its conditions that are true, nil for other kinds.
func essentialStatus(status *runtime.RawExtension, kind string) *runtime.RawExtension {
	type condition struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	}
	var essential struct {
		Phase      string      `json:"phase,omitempty"`
		Conditions []condition `json:"conditions,omitempty"`
	}
	if kind != "Job" && kind != "Pod" || json.Unmarshal(status.Raw, &essential) != nil {
		return nil
	}
	essential.Conditions = slices.DeleteFunc(essential.Conditions, func(c condition) bool { return c.Status != string(metav1.ConditionTrue) })
	text, err := json.Marshal(essential)
	if err != nil {
		return nil
	}
	return &runtime.RawExtension{Raw: text}
}

func describeClusters(clusters []workv1alpha2.TargetCluster) string {
	if len(clusters) == 1 {
		return "cluster " + clusters[0].Name
	}
	return fmt.Sprintf("all %d clusters", len(clusters))
}

// writeStatus writes the status of a binding, if it says anything new.
func writeStatus(ctx context.Context, c client.Client, b *model.Binding, status workv1alpha2.ResourceBindingStatus) error {
	defer kube.Span(&ctx, kube.StageReport)()
	if equality.Semantic.DeepEqual(*b.Status, status) {
		return nil
	}
	return client.IgnoreNotFound(kube.ApplyStatusPart(ctx, c, workv1alpha2.GroupVersion.WithKind(b.Kind()), b.Object, status, status, model.FieldOwner))
}

// reportProtected tells on the policy, once, that objects stay only because of deletionProtection: on the binding, if the policy is
// gone.
func (r *reconciler) reportProtected(ctx context.Context, o Observed, d Decision) error {
	at := slices.IndexFunc(d.Steps, func(s Step) bool {
		return s.Action == model.ActionDelete && s.Reason.Code == ReasonProtected && o.Works[s.Object.Cluster].DeletionTimestamp.IsZero()
	})
	if at < 0 {
		return nil
	}
	object := o.Binding.Object
	policy := client.Object(&policyv1alpha1.PropagationPolicy{})
	claim := model.ClaimOf(o.Binding)
	if claim.Namespace == "" {
		policy = &policyv1alpha1.ClusterPropagationPolicy{}
	}
	if claim.Name != "" {
		found, err := kube.GetIfExists(ctx, r.client, claim, policy)
		if err != nil {
			return err
		}
		if found != nil {
			object = found
		}
	}
	r.recorder.Eventf(object, nil, corev1.EventTypeNormal, string(ReasonProtected), "Propagate", "%s", d.Steps[at].Reason.Message)
	return nil
}

// NotWritten is why nothing is known of an object in a cluster.
func NotWritten(cluster string) passage.Reason {
	return passage.Because(model.ReasonApplying, "nothing has been written to cluster %s yet", cluster)
}
