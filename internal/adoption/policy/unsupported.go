package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// unsupportedField is a field that the schema takes, so that no manifest loses it, and that Fairlead does not act on.
type unsupportedField struct {
	path string
	// remedy is what the user does about the field.
	remedy string
	isSet  func(*policyv1alpha1.PropagationSpec) bool
}

// unsupportedFields of a policy, in the order of the spec.
var unsupportedFields = []unsupportedField{
	{"spec.association", "set spec.propagateDeps instead", func(s *policyv1alpha1.PropagationSpec) bool { return s.Association }},
	{"spec.placement.spreadConstraints.spreadByLabel", "use spreadByField", func(s *policyv1alpha1.PropagationSpec) bool {
		return slices.ContainsFunc(s.Placement.SpreadConstraints, func(c policyv1alpha1.SpreadConstraint) bool { return c.SpreadByLabel != "" })
	}},
	{"spec.placement.replicaScheduling.replicaDivisionPreference: Aggregated", "set it to Weighted", func(s *policyv1alpha1.PropagationSpec) bool {
		return s.Placement.Divides() && s.Placement.ReplicaScheduling.ReplicaDivisionPreference == policyv1alpha1.DivideAggregated
	}},
	{"spec.placement.workloadAffinity", "remove the field, and name the clusters of each workload in a policy of its own", func(s *policyv1alpha1.PropagationSpec) bool {
		return s.Placement.WorkloadAffinity != nil
	}},
	{"spec.dependentOverrides", "remove the field; Fairlead has no OverridePolicies", func(s *policyv1alpha1.PropagationSpec) bool { return len(s.DependentOverrides) > 0 }},
	{"spec.failover", "remove the field; Fairlead moves no resources away from clusters that fail", func(s *policyv1alpha1.PropagationSpec) bool { return s.Failover != nil }},
	{"spec.schedulePriority", "remove the field; Fairlead places every resource at once", func(s *policyv1alpha1.PropagationSpec) bool { return s.SchedulePriority != nil }},
}

// UnsupportedFields are the fields of a policy that Fairlead does not support, in the order of the spec.
func (p *Policy) UnsupportedFields() []string {
	var all []string
	for _, f := range unsupportedFields {
		if f.isSet(&p.Spec) {
			all = append(all, f.path)
		}
	}
	return all
}

// Unsupported is why a policy with fields that Fairlead does not support is not carried out, nil if it has none.
func (p *Policy) Unsupported() *passage.Reason {
	return unsupportedReason("the policy", p.UnsupportedFields())
}

// UnsupportedInBinding is why nothing is written for a binding: its policy, or the binding itself, has fields that Fairlead does not
// support. Nil if neither has.
func UnsupportedInBinding(b *model.Binding) *passage.Reason {
	if claim := model.ClaimOf(b); claim != (model.PolicyKey{}) {
		return unsupportedReason("policy "+strings.TrimPrefix(claim.String(), "/"), model.UnsupportedFieldsOf(b))
	}
	return unsupportedReason("the binding", unsupportedBindingFields(b.Spec))
}

func unsupportedReason(owner string, paths []string) *passage.Reason {
	if len(paths) == 0 {
		return nil
	}
	var all []string
	for _, path := range paths {
		all = append(all, fmt.Sprintf("%s is not supported: %s", path, remedyFor(path)))
	}
	reason := passage.Because(model.ReasonUnsupported, "%s; until %s is corrected, nothing is written to clusters for it", strings.Join(all, "; "), owner)
	return &reason
}

func remedyFor(path string) string {
	for _, f := range unsupportedFields {
		if f.path == path {
			return f.remedy
		}
	}
	return "remove the field"
}

// unsupportedBindingFields are the fields of a binding that no policy has written and that Fairlead does not support.
func unsupportedBindingFields(s *workv1alpha2.ResourceBindingSpec) []string {
	var all []string
	for _, f := range []struct {
		path string
		set  bool
	}{
		{"spec.components", len(s.Components) > 0},
		{"spec.gracefulEvictionTasks", len(s.GracefulEvictionTasks) > 0},
		{"spec.failover", s.Failover != nil},
		{"spec.rescheduleTriggeredAt", s.RescheduleTriggeredAt != nil},
		{"spec.suspension.scheduling", s.Suspension != nil && ptr.Deref(s.Suspension.Scheduling, false)},
		{"spec.schedulePriority", s.SchedulePriority != nil},
		{"spec.workloadAffinityGroups", s.WorkloadAffinityGroups != nil},
	} {
		if f.set {
			all = append(all, f.path)
		}
	}
	return all
}

// RemovedNote is what there is to say of a binding that another control plane has written, and that a policy takes: which of its
// fields are removed. Empty if none are.
func RemovedNote(have, want *model.Binding) string {
	if have == nil {
		return ""
	}
	kept := unsupportedBindingFields(want.Spec)
	removed := slices.DeleteFunc(unsupportedBindingFields(have.Spec), func(path string) bool { return slices.Contains(kept, path) })
	if len(removed) == 0 {
		return ""
	}
	return fmt.Sprintf("policy %s takes %s, and fields that Fairlead does not support are removed from it: %s",
		strings.TrimPrefix(model.ClaimOf(want).String(), "/"), have, strings.Join(removed, ", "))
}
