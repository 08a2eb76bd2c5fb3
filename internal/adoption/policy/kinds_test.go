package policy

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// A policy of more kinds than are followed says so, and follows the first; selectors of the same kind count once.
func TestTooManyKinds(t *testing.T) {
	kinds := func(n int) *Policy {
		p := policyOf("p")
		for i := range 2 * n {
			p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "example.com/v1", Kind: fmt.Sprintf("Boat%d", i/2)})
		}
		return p
	}
	if is, reason := Count(kinds(MaxKinds), nil, nil).Condition(kinds(MaxKinds)); reason.Code != model.ReasonNothingMatched {
		t.Errorf("as many as are followed: %s %s", is, reason)
	}
	p := kinds(10_000)
	is, reason := Count(p, nil, nil).Condition(p)
	want := "spec.resourceSelectors names 10000 different kinds, and only the resources of the first 64 are followed: divide the selectors among several policies"
	if is != metav1.ConditionFalse || reason.Code != model.ReasonInvalidSelector || reason.Message != want {
		t.Errorf("got %s %s", is, reason)
	}
	followed := p.FollowedKinds()
	if len(followed) != MaxKinds || followed[0].Kind != "Boat0" || followed[MaxKinds-1].Kind != "Boat63" {
		t.Errorf("followed: %v", followed)
	}
}
