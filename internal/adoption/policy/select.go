package policy

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Match is how closely a policy selects a resource.
type Match int

const (
	NoMatch Match = iota
	matchByKind
	matchByLabels
	matchByName
)

// Select finds the policy that takes a resource, nil if none does. The policy that has claimed the resource keeps it as long as it
// selects it and no other one preempts it. Otherwise a PropagationPolicy precedes a ClusterPropagationPolicy, then the highest priority, the closest match and
// the first name decide.
func Select(t model.Template, policies []*Policy, claimed model.PolicyKey) *Policy {
	if IsExcluded(t) {
		return nil
	}
	var chosen, holder *Policy
	var closest Match
	for _, p := range policies {
		if p.Key() == claimed && !p.Deleted && !p.Aborted && p.Match(t) != NoMatch {
			holder = p
		}
	}
	for _, p := range policies {
		f := p.Match(t)
		if f == NoMatch || p.Deleted || p.Aborted || holder != nil && !p.preempts(holder) {
			continue
		}
		if chosen == nil || comparePrecedence(p, f, chosen, closest) < 0 {
			chosen, closest = p, f
		}
	}
	if chosen == nil {
		return holder
	}
	return chosen
}

// preempts tells whether a policy takes resources from one that holds them: a PropagationPolicy from any ClusterPropagationPolicy,
// and otherwise only with a higher priority and from a policy of its own kind.
func (p *Policy) preempts(holder *Policy) bool {
	switch {
	case p.Spec.Preemption != policyv1alpha1.PreemptAlways || p.Key() == holder.Key() || len(p.UnsupportedFields()) > 0:
		return false
	case p.Namespace != "" && holder.Namespace == "":
		return true
	case p.Namespace == "" && holder.Namespace != "":
		return false
	}
	return ptr.Deref(p.Spec.Priority, 0) > ptr.Deref(holder.Spec.Priority, 0)
}

// comparePrecedence is negative if the first comes before the second.
func comparePrecedence(a *Policy, fitA Match, b *Policy, fitB Match) int {
	ofCluster := func(p *Policy) int {
		if p.Namespace == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(ofCluster(a), ofCluster(b)),
		cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)),
		cmp.Compare(fitB, fitA),
		cmp.Compare(a.Name, b.Name),
	)
}

// Match is the closest match of all selectors.
func (p *Policy) Match(t model.Template) Match {
	best := NoMatch
	for _, s := range p.Spec.ResourceSelectors {
		best = max(best, p.matchSelector(s, t))
	}
	return best
}

func (p *Policy) matchSelector(s policyv1alpha1.ResourceSelector, t model.Template) Match {
	namespace := s.Namespace
	if p.Namespace != "" {
		// A policy reaches no further than its own namespace.
		if namespace != "" && namespace != p.Namespace {
			return NoMatch
		}
		namespace = p.Namespace
	}
	switch {
	case s.APIVersion != t.APIVersion || s.Kind != t.Kind || namespace != "" && namespace != t.Namespace:
		return NoMatch
	case s.Name != "":
		if s.Name == t.Name {
			return matchByName
		}
		return NoMatch
	case s.LabelSelector != nil:
		selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
		if err == nil && selector.Matches(labels.Set(t.Labels)) {
			return matchByLabels
		}
		return NoMatch
	}
	return matchByKind
}
