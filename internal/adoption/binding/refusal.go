package binding

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// refusal is why no Work is made of the resource that a binding names; nil if there is no objection. The operator may read far more
// than those who may write bindings in a namespace: a binding gives away nothing that a policy at its place would not. Template is
// nil before it is read.
func refusal(o Observed) *passage.Reason {
	b, named := o.Binding, model.TemplateOfBinding(o.Binding)
	own := b.GetNamespace()
	switch {
	case own == "" && named.Namespace != "":
		return refuse(b, "a ClusterResourceBinding names cluster-scoped resources only: delete the binding, and select the resource with a PropagationPolicy in namespace %s", named.Namespace)
	case named.Namespace != own:
		return refuse(b, "spec.resource.namespace must be the namespace of the binding, %s: delete the binding, and select the resource with a policy", own)
	case policy.IsExcluded(named):
		return refuse(b, "the resource belongs to the hub itself, and is never propagated: delete the binding")
	case o.Template != nil && o.Template.GetNamespace() != own:
		// The API server ignores the namespace of a request for a cluster-scoped resource.
		return refuse(b, "the resource is cluster-scoped, and a ResourceBinding names resources of its own namespace only: delete the binding, and select the resource with a ClusterPropagationPolicy")
	}
	return nil
}

func refuse(b *model.Binding, format string, args ...any) *passage.Reason {
	reason := passage.Because(model.ReasonRefused, "spec.resource of %s names %s, and nothing is written to clusters: "+format,
		append([]any{b, model.TemplateOfBinding(b).Object()}, args...)...)
	return &reason
}

// notTaken is why nothing is written for a binding that no policy takes: one that somebody else has written, or that was released
// before it had all of its Works. Nil for any other.
func notTaken(b *model.Binding, works map[string]*workv1alpha1.Work) *passage.Reason {
	var without []string
	for _, c := range model.Targets(b) {
		if works[c.Name] == nil {
			without = append(without, c.Name)
		}
	}
	if model.IsTaken(b) || len(without) == 0 && len(works) > 0 {
		return nil
	}
	clusters := "clusters"
	if len(works) > 0 {
		clusters = listClusters(without)
	}
	where, note := "a ClusterPropagationPolicy", ""
	if namespace := b.GetNamespace(); namespace != "" {
		where = "a policy, such as a PropagationPolicy in namespace " + namespace
	}
	if mark := model.KarmadaMark(b); mark != "" {
		note = fmt.Sprintf(", which has the %s of a control plane of Karmada", mark)
	}
	reason := passage.Because(model.ReasonNoPolicy, "no policy takes %s, and nothing is written to %s for %s%s: select the resource with %s, or delete the binding",
		model.TemplateOfBinding(b).Object(), clusters, b, note, where)
	return &reason
}

// workRefusedError is why the Work of a cluster is not written. A retry at once would be refused as well.
type workRefusedError struct {
	cluster string
	reason  passage.Reason
	// retryAfter is zero if only a change of the template or its binding can help.
	retryAfter time.Duration
}

func (r *workRefusedError) Error() string { return r.reason.Message }

// workTooLarge is for a resource that the hub can keep, and whose Work it cannot: a Work quotes it.
func workTooLarge(b *model.Binding, cluster string, err error) *workRefusedError {
	return &workRefusedError{cluster: cluster, reason: passage.Because(model.ReasonNotApplied, "%s is too large for a Work of cluster %s (%v): split the resource",
		model.TemplateOfBinding(b).Object(), cluster, err)}
}

// ownerRecheckInterval is how often a binding tries again whose Work belongs to another binding.
const ownerRecheckInterval = time.Minute

// workOwned is for a resource whose Work belongs to another binding.
func workOwned(b, owner *model.Binding, work *workv1alpha1.Work) *workRefusedError {
	cluster, _ := model.ClusterOf(work.Namespace)
	return &workRefusedError{cluster: cluster, retryAfter: ownerRecheckInterval, reason: passage.Because(model.ReasonRefused,
		"spec.resource of %s names %s, whose Work for cluster %s belongs to %s: delete one of the two bindings", b, model.TemplateOfBinding(b).Object(), cluster, owner)}
}

// workRefusals are the Works of a binding that are not written, in the order of its clusters.
type workRefusals []*workRefusedError

func (all workRefusals) Error() string {
	if len(all) == 1 {
		return all[0].Error()
	}
	return fmt.Sprintf("%s; the Works of %d more clusters are refused: see status.aggregatedStatus", all[0].Error(), len(all)-1)
}

// retryAfter is zero if only a change of the template or its binding can help.
func (all workRefusals) retryAfter() time.Duration {
	var first time.Duration
	for _, r := range all {
		if r.retryAfter > 0 && (first == 0 || r.retryAfter < first) {
			first = r.retryAfter
		}
	}
	return first
}

// status is that of the binding of the Works.
func (all workRefusals) status(b *model.Binding, works map[string]*workv1alpha1.Work, from Source, now time.Time) workv1alpha2.ResourceBindingStatus {
	status, _ := AggregateStatus(b, works, Source{Version: from.Version}, now)
	message := all.Error()
	if from.Kept != nil {
		message += "; " + from.Kept.Message
	}
	model.SetCondition(&status.Conditions, workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse, passage.Because(all[0].reason.Code, "%s", message), b.GetGeneration(), now)
	for _, r := range all {
		for i := range status.AggregatedStatus {
			if item := &status.AggregatedStatus[i]; item.ClusterName == r.cluster {
				item.Applied, item.Reason, item.AppliedMessage = false, string(r.reason.Code), r.reason.Message
			}
		}
	}
	return status
}
