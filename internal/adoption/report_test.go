package adoption

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
)

// What a binding says counts only if it speaks of the policy as it is.
func TestReportOfABinding(t *testing.T) {
	policy := &Policy{Namespace: "shop", Name: "p"}
	bound := func(claimant *Policy, status metav1.ConditionStatus, reason passage.Code, observed int64) *binding {
		b, err := intended(Template{Namespace: "shop", Name: "cart"}, "", policy, nil, -1, nil)
		if err != nil {
			t.Fatal(err)
		}
		claim(b, claimant)
		b.SetGeneration(2)
		b.status.Conditions = []metav1.Condition{{
			Type: workv1alpha2.ConditionFullyApplied, Status: status, Reason: string(reason), Message: "said so", ObservedGeneration: observed,
		}}
		return b
	}
	earlier := bound(policy, metav1.ConditionTrue, ReasonFullyApplied, 2)
	earlier.spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	needed := bound(nil, metav1.ConditionTrue, ReasonFullyApplied, 2)
	needed.spec.Placement = nil
	for name, c := range map[string]struct {
		binding *binding
		status  metav1.ConditionStatus
		reason  passage.Code
	}{
		"applied":                           {bound(policy, metav1.ConditionTrue, ReasonFullyApplied, 2), metav1.ConditionTrue, ReasonAllApplied},
		"applied, and has changed":          {bound(policy, metav1.ConditionTrue, ReasonFullyApplied, 1), metav1.ConditionUnknown, ReasonApplying},
		"applied, as the policy was before": {earlier, metav1.ConditionUnknown, ReasonApplying},
		"applied, because it is needed":     {needed, metav1.ConditionTrue, ReasonAllApplied},
		"a conflict":                        {bound(policy, metav1.ConditionFalse, ReasonConflict, 2), metav1.ConditionFalse, ReasonConflict},
		"refused":                           {bound(policy, metav1.ConditionFalse, ReasonNotApplied, 2), metav1.ConditionFalse, ReasonFailed},
		"suspended":                         {bound(policy, metav1.ConditionFalse, ReasonSuspended, 2), metav1.ConditionUnknown, ReasonSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			if status, reason := count(policy, []*binding{c.binding}).conditionOf(policy); status != c.status || reason.Code != c.reason {
				t.Errorf("got %s, %s", status, reason)
			}
		})
	}
}
