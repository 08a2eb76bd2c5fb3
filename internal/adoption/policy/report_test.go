package policy

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// What a binding says counts only if it speaks of the policy as it is.
func TestReportOfABinding(t *testing.T) {
	policy := &Policy{Namespace: "shop", Name: "p"}
	bound := func(claimant *Policy, status metav1.ConditionStatus, reason passage.Code, observed int64) *model.Binding {
		b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "cart"})
		b.Spec.ConflictResolution, b.Spec.Placement = policyv1alpha1.ConflictAbort, &policy.Spec.Placement
		if claimant != nil {
			model.Claim(b, claimant.Key())
		}
		b.SetGeneration(2)
		b.Status.Conditions = []metav1.Condition{{
			Type: workv1alpha2.ConditionFullyApplied, Status: status, Reason: string(reason), Message: "said so", ObservedGeneration: observed,
		}}
		return b
	}
	earlier := bound(policy, metav1.ConditionTrue, model.ReasonFullyApplied, 2)
	earlier.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	needed := bound(nil, metav1.ConditionTrue, model.ReasonFullyApplied, 2)
	needed.Spec.Placement = nil
	for name, c := range map[string]struct {
		binding *model.Binding
		status  metav1.ConditionStatus
		reason  passage.Code
	}{
		"applied":                           {bound(policy, metav1.ConditionTrue, model.ReasonFullyApplied, 2), metav1.ConditionTrue, model.ReasonAllApplied},
		"applied, and has changed":          {bound(policy, metav1.ConditionTrue, model.ReasonFullyApplied, 1), metav1.ConditionUnknown, model.ReasonApplying},
		"applied, as the policy was before": {earlier, metav1.ConditionUnknown, model.ReasonApplying},
		"applied, because it is needed":     {needed, metav1.ConditionTrue, model.ReasonAllApplied},
		"a conflict":                        {bound(policy, metav1.ConditionFalse, model.ReasonConflict, 2), metav1.ConditionFalse, model.ReasonConflict},
		"refused":                           {bound(policy, metav1.ConditionFalse, model.ReasonNotApplied, 2), metav1.ConditionFalse, model.ReasonFailed},
		"suspended":                         {bound(policy, metav1.ConditionFalse, model.ReasonSuspended, 2), metav1.ConditionUnknown, model.ReasonSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			if status, reason := Count(policy, []*model.Binding{c.binding}, nil).Condition(policy); status != c.status || reason.Code != c.reason {
				t.Errorf("got %s, %s", status, reason)
			}
		})
	}
}
