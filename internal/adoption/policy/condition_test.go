package policy

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// An abort comes first, then what only the user can correct, then what was asked for, then failures before conflicts before waiting.
func TestCondition(t *testing.T) {
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	counted := func(matched, applied, failed, conflicting, pending int32) Counts {
		c := Counts{pending: pending, failure: "denied", conflict: "exists"}
		c.Matched, c.Applied, c.Failed, c.Conflicting = matched, applied, failed, conflicting
		return c
	}
	unreadable := counted(1, 1, 0, 0, 0)
	unreadable.kindError = errors.New("the hub has no kind Boat")
	suspended := counted(2, 1, 0, 0, 1)
	suspended.suspension = "nothing is written to cluster west"
	for name, c := range map[string]struct {
		policy Policy
		counts Counts
		status metav1.ConditionStatus
		code   passage.Code
		says   string
	}{
		"a selector that cannot work": {
			Policy{Paused: true, Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{LabelSelector: invalid}}}}, counted(1, 1, 0, 0, 0),
			metav1.ConditionFalse, model.ReasonInvalidSelector, `spec.resourceSelectors[0].labelSelector selects nothing: "Near" is not a valid label selector operator`,
		},
		"a placement that cannot work": {
			Policy{Spec: policyv1alpha1.PropagationSpec{Placement: policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{LabelSelector: invalid}}}}, counted(1, 1, 0, 0, 0),
			metav1.ConditionFalse, model.ReasonInvalidPlacement, `spec.placement.clusterAffinity: "Near" is not a valid label selector operator`,
		},
		"aborted, with a selector that cannot work": {
			Policy{Aborted: true, Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{LabelSelector: invalid}}}}, counted(0, 0, 0, 0, 0),
			metav1.ConditionFalse, model.ReasonAborted, "the policy is aborted: its resources are released and their originals restored; remove annotation fairlead.dev/aborted to start again",
		},
		"aborting":          {Policy{Aborted: true, Paused: true}, counted(3, 1, 0, 0, 2), metav1.ConditionFalse, model.ReasonAborting, "the policy is aborted: 3 resources not yet released"},
		"aborted":           {Policy{Aborted: true}, counted(0, 0, 0, 0, 0), metav1.ConditionFalse, model.ReasonAborted, "the policy is aborted: its resources are released and their originals restored; remove annotation fairlead.dev/aborted to start again"},
		"an unknown kind":   {Policy{Paused: true}, unreadable, metav1.ConditionFalse, model.ReasonNotFollowed, "the hub has no kind Boat"},
		"paused":            {Policy{Paused: true}, counted(2, 0, 1, 1, 0), metav1.ConditionUnknown, model.ReasonPaused, "the policy is paused: 0 of 2 resources are applied, and nothing is written to clusters"},
		"nothing matched":   {Policy{}, counted(0, 0, 0, 0, 0), metav1.ConditionUnknown, model.ReasonNothingMatched, "the policy takes no resources: none is selected, or other policies take them"},
		"a failure":         {Policy{}, counted(4, 1, 1, 1, 1), metav1.ConditionFalse, model.ReasonFailed, "1 of 4 resources could not be applied, the first: denied"},
		"a conflict":        {Policy{}, counted(3, 1, 0, 1, 1), metav1.ConditionFalse, model.ReasonConflict, "1 of 3 resources exist already and are left alone, the first: exists"},
		"suspended":         {Policy{}, suspended, metav1.ConditionUnknown, model.ReasonSuspended, "1 of 2 resources are applied, the first that is not: nothing is written to cluster west"},
		"pending":           {Policy{}, counted(2, 1, 0, 0, 1), metav1.ConditionUnknown, model.ReasonApplying, "1 of 2 resources are applied"},
		"all are applied":   {Policy{}, counted(2, 2, 0, 0, 0), metav1.ConditionTrue, model.ReasonAllApplied, "all 2 resources are applied in all of their clusters"},
		"one is all of one": {Policy{}, counted(1, 1, 0, 0, 0), metav1.ConditionTrue, model.ReasonAllApplied, "all 1 resources are applied in all of their clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, reason := c.counts.Condition(&c.policy); status != c.status || reason.Code != c.code || reason.Message != c.says {
				t.Errorf("got %s %s", status, reason)
			}
		})
	}
}

func TestHold(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		code   passage.Code
	}{
		"none":               {Policy{}, ""},
		"dispatching":        {Policy{Spec: policyv1alpha1.PropagationSpec{Suspension: &policyv1alpha1.Suspension{Dispatching: ptr.To(false)}}}, ""},
		"suspended":          {Policy{Spec: policyv1alpha1.PropagationSpec{Suspension: &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}}, model.ReasonSuspended},
		"paused":             {Policy{Paused: true}, model.ReasonPaused},
		"paused and aborted": {Policy{Paused: true, Aborted: true}, model.ReasonAborted},
	} {
		t.Run(name, func(t *testing.T) {
			hold := c.policy.Hold()
			if (hold == nil) != (c.code == "") || hold != nil && hold.Code != c.code {
				t.Errorf("got %v", hold)
			}
		})
	}
}

// An event is written when a policy becomes ready or not ready, or not ready for another reason, and never while it is in progress.
func TestNeedsEvent(t *testing.T) {
	ready := &metav1.Condition{Status: metav1.ConditionTrue, Reason: string(model.ReasonAllApplied)}
	conflict := &metav1.Condition{Status: metav1.ConditionFalse, Reason: string(model.ReasonConflict)}
	for name, c := range map[string]struct {
		previous *metav1.Condition
		is       metav1.ConditionStatus
		code     passage.Code
		want     bool
	}{
		"the first, in progress": {nil, metav1.ConditionUnknown, model.ReasonApplying, false},
		"the first, ready":       {nil, metav1.ConditionTrue, model.ReasonAllApplied, true},
		"still ready":            {ready, metav1.ConditionTrue, model.ReasonAllApplied, false},
		"in progress again":      {ready, metav1.ConditionUnknown, model.ReasonApplying, false},
		"no longer ready":        {ready, metav1.ConditionFalse, model.ReasonConflict, true},
		"still a conflict":       {conflict, metav1.ConditionFalse, model.ReasonConflict, false},
		"a failure now":          {conflict, metav1.ConditionFalse, model.ReasonFailed, true},
		"ready again":            {conflict, metav1.ConditionTrue, model.ReasonAllApplied, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := needsEvent(c.previous, c.is, passage.Reason{Code: c.code}); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
