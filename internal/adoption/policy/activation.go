package policy

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// IsLazy tells whether changes of the policy take effect on a resource when its template changes, and not at once.
func (p *Policy) IsLazy() bool { return p.Spec.ActivationPreference == policyv1alpha1.ActivationLazy }

// MayPropagateDeps tells whether resources of the policy may bring their dependencies: by its spec, or by an earlier one that is still
// in force.
func (p *Policy) MayPropagateDeps() bool { return p.Spec.PropagateDeps || p.IsLazy() }

// Activation is a policy as it is in force for one template.
type Activation struct {
	*Policy
	// Deferred holds if the policy takes effect only when the template changes. Policy then has the spec that the binding was
	// written for.
	Deferred bool
	// Unplaced holds if it is deferred, and no policy has placed the template before.
	Unplaced bool
}

// Activate decides whether a policy is in force for a template, by the binding that there is. A Lazy policy is if the template has
// changed since the binding was written, or was created since the policy has changed. Suspension is always that of the policy.
// Created is zero for a template that does not exist yet.
func (p *Policy) Activate(have *model.Binding, version string, created time.Time) Activation {
	if !p.IsLazy() || have != nil && (p.isRequested(have.Spec) || isFormer(have)) {
		return Activation{Policy: p}
	}
	if have != nil && model.ActivatedVersion(have) != "" {
		if model.HasChanged(have, version) {
			return Activation{Policy: p}
		}
	} else if created.IsZero() || !created.Before(p.ChangedAt) {
		return Activation{Policy: p}
	}
	earlier := *p
	earlier.Spec.Placement, earlier.Spec.PropagateDeps, earlier.Spec.PreserveResourcesOnDeletion = policyv1alpha1.Placement{}, false, nil
	if have == nil {
		return Activation{Policy: &earlier, Deferred: true, Unplaced: true}
	}
	s := have.Spec
	if s.Placement != nil {
		earlier.Spec.Placement = *s.Placement
	}
	earlier.Spec.ConflictResolution, earlier.Spec.PreserveResourcesOnDeletion = s.ConflictResolution, s.PreserveResourcesOnDeletion
	earlier.Spec.DeletionProtection, earlier.Spec.PropagateDeps, earlier.Spec.SchedulerName = s.DeletionProtection, s.PropagateDeps, s.SchedulerName
	return Activation{Policy: &earlier, Deferred: true, Unplaced: s.Placement == nil}
}

// isFormer holds for what is left of a binding that somebody has deleted: where the resource is, and not by which policy.
func isFormer(b *model.Binding) bool { return b.Spec.Placement == nil && len(b.Spec.Clusters) > 0 }

// isRequested tells whether a binding was written for the policy as it is now, but for its suspension.
func (p *Policy) isRequested(s *workv1alpha2.ResourceBindingSpec) bool {
	resolution, _ := ResolveConflict(p.Spec.ConflictResolution, "")
	return equality.Semantic.DeepEqual(s.Placement, &p.Spec.Placement) && s.ConflictResolution == resolution && s.PropagateDeps == p.Spec.PropagateDeps &&
		equality.Semantic.DeepEqual(s.PreserveResourcesOnDeletion, p.Spec.PreserveResourcesOnDeletion) &&
		s.DeletionProtection == p.Spec.DeletionProtection && s.SchedulerName == p.Spec.SchedulerName
}
