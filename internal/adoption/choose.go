package adoption

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// Policy is a PropagationPolicy, or a ClusterPropagationPolicy, which is in no namespace.
type Policy struct {
	Namespace, Name string
	// Generation of the spec, and whether it is being deleted, paused or aborted.
	Generation               int64
	Deleted, Paused, Aborted bool
	Spec                     policyv1alpha1.PropagationSpec
}

// Key names a policy. One of the cluster has no namespace.
type Key struct{ Namespace, Name string }

func (p *Policy) Key() Key { return Key{p.Namespace, p.Name} }

func (k Key) String() string { return k.Namespace + "/" + k.Name }

// kinds are those that the policy selects resources of.
func (p *Policy) kinds() map[schema.GroupVersionKind]bool {
	all := map[schema.GroupVersionKind]bool{}
	for _, s := range p.Spec.ResourceSelectors {
		all[schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)] = true
	}
	return all
}

// Template is a resource of the hub, as far as policies look at it.
type Template struct {
	APIVersion, Kind, Namespace, Name string
	Labels                            map[string]string
}

func (t Template) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
}

// fit is how closely a policy selects a resource.
type fit int

const (
	unfit fit = iota
	byKind
	byLabels
	byName
)

// choose finds the policy that takes a resource, nil if none does. Once one has, it keeps it for as long as it selects it.
// Otherwise those of the resource's namespace come before those of the cluster, then the one of the highest priority, the
// one that selects most closely, and the first of the alphabet.
func choose(t Template, policies []*Policy, claimed Key) *Policy {
	if everyClusterHas(t) {
		return nil
	}
	var chosen *Policy
	var closest fit
	for _, p := range policies {
		f := p.fit(t)
		if f == unfit || p.Deleted || p.Aborted {
			continue
		}
		if p.Key() == claimed {
			return p
		}
		if chosen == nil || compare(p, f, chosen, closest) < 0 {
			chosen, closest = p, f
		}
	}
	return chosen
}

// compare is negative if the first comes before the second.
func compare(a *Policy, fitA fit, b *Policy, fitB fit) int {
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

// fit is that of the selector that fits best.
func (p *Policy) fit(t Template) fit {
	best := unfit
	for _, s := range p.Spec.ResourceSelectors {
		best = max(best, p.fitOf(s, t))
	}
	return best
}

func (p *Policy) fitOf(s policyv1alpha1.ResourceSelector, t Template) fit {
	namespace := s.Namespace
	if p.Namespace != "" {
		// A policy reaches no further than its own namespace.
		if namespace != "" && namespace != p.Namespace {
			return unfit
		}
		namespace = p.Namespace
	}
	switch {
	case s.APIVersion != t.APIVersion || s.Kind != t.Kind || namespace != "" && namespace != t.Namespace:
		return unfit
	case s.Name != "":
		if s.Name == t.Name {
			return byName
		}
		return unfit
	case s.LabelSelector != nil:
		selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
		if err == nil && selector.Matches(labels.Set(t.Labels)) {
			return byLabels
		}
		return unfit
	}
	return byKind
}

// invalidPlacement is why a policy goes nowhere, if its placement cannot be understood.
func (p *Policy) invalidPlacement() error {
	_, err := place(p.Spec.Placement, []Member{{Name: "any"}}, 1)
	return err
}

// invalidSelectors are the places of the selectors that select nothing, and why.
func (p *Policy) invalidSelectors() map[int]error {
	invalid := map[int]error{}
	for i, s := range p.Spec.ResourceSelectors {
		if s.LabelSelector == nil || s.Name != "" {
			continue
		}
		if _, err := metav1.LabelSelectorAsSelector(s.LabelSelector); err != nil {
			invalid[i] = err
		}
	}
	return invalid
}
