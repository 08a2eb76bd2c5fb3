package policy

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// Of several selectors that cannot work, the first is named, so that the message stays the same.
func TestTheFirstInvalidSelectorIsNamed(t *testing.T) {
	p := &Policy{Namespace: "shop", Name: "p"}
	for _, operator := range []metav1.LabelSelectorOperator{"In", "Near", "Far", "Beside"} {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: operator, Values: []string{"b"}}},
		}})
	}
	for range 50 {
		if _, reason := Count(p, nil, nil).Condition(p); !strings.HasPrefix(reason.Message, "spec.resourceSelectors[1].labelSelector selects nothing: ") {
			t.Fatalf("got %s", reason)
		}
	}
}

// A selector by name does not use its labels, so they cannot be wrong.
func TestInvalidLabelsBesideANameAreNoError(t *testing.T) {
	s := called("cart")
	s.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	if got := policyOf("p", s).SelectorErrors(); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}
