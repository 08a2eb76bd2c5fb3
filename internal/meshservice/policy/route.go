package policy

import (
	"cmp"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// HTTPRoute is the rules of a destination, of which the first match applies. Other requests go to the destination.
type HTTPRoute struct {
	Rules []HTTPRule `json:"rules,omitempty"`
}

// HTTPRule has the backends of some requests.
type HTTPRule struct {
	// Namespace is that of the policy, and of references without a namespace.
	Namespace string `json:"namespace,omitempty"`
	// Hostnames restrict the rule, if there are any.
	Hostnames   []string                  `json:"hostnames,omitempty"`
	Match       kumav1alpha1.HTTPMatch    `json:"match,omitzero"`
	Filters     []apiextensionsv1.JSON    `json:"filters,omitempty"`
	BackendRefs []kumav1alpha1.BackendRef `json:"backendRefs,omitempty"`
}

// TCPRoute has the backends of connections to a destination.
type TCPRoute struct {
	// Namespace is that of the policy, and of references without a namespace.
	Namespace   string                    `json:"namespace,omitempty"`
	BackendRefs []kumav1alpha1.BackendRef `json:"backendRefs,omitempty"`
}

// routeMerge is what is known of the rules while routes are merged.
type routeMerge struct {
	// requests are the hostnames and matches that there is a rule for.
	requests sets.Set[string]
	size     routeSize
}

// mergeRules adds the rules of an entry whose match no earlier rule has, and says whether there are any.
func (e *Effective) mergeRules(from *entry, to *kumav1alpha1.MeshHTTPRouteTo) bool {
	if e.merging == nil {
		e.merging = &routeMerge{requests: sets.New[string]()}
	}
	var added []HTTPRule
	requests, size := sets.New[string](), 0
	for _, rule := range to.Rules {
		matches := rule.Matches
		if len(matches) == 0 {
			matches = []kumav1alpha1.HTTPMatch{{}}
		}
		for _, m := range matches {
			taken := HTTPRule{Match: m, Filters: rule.Default.Filters, BackendRefs: rule.Default.BackendRefs}
			if len(taken.Filters) > 0 || len(taken.BackendRefs) > 0 {
				taken.Namespace = from.policy.namespace
			}
			request := textOf([]any{to.Hostnames, m})
			if e.merging.requests.Has(request) || requests.Has(request) {
				continue
			}
			requests.Insert(request)
			size += minRuleSize + len(textOf(taken))
			taken.Hostnames = to.Hostnames
			added = append(added, taken)
		}
	}
	if len(added) == 0 {
		return false
	}
	if !e.merging.size.add(to.Hostnames, size) {
		e.LeftOut = append(e.LeftOut, from.leftOut())
		return false
	}
	e.merging.requests.Insert(requests.UnsortedList()...)
	if e.HTTPRoute == nil {
		e.HTTPRoute = &HTTPRoute{}
	}
	e.HTTPRoute.Rules = append(e.HTTPRoute.Rules, added...)
	return true
}

// textOf is equal for equal values.
func textOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		// Values decoded from the API can be encoded; only hand-made raw JSON cannot.
		return fmt.Sprintf("%v %v", err, value)
	}
	return string(text)
}

// compareSpecificity puts the more specific rule first: an exact path before a prefix, a long one before a short one, then
// a method, more headers, more parameters.
func compareSpecificity(a, b HTTPRule) int {
	path := func(r HTTPRule) (kind, length int) {
		switch p := r.Match.Path; {
		case p == nil:
			return 0, 0
		case p.Type == "Exact":
			return 3, len(p.Value)
		case p.Type == "RegularExpression":
			return 2, len(p.Value)
		default:
			return 1, len(p.Value)
		}
	}
	method := func(r HTTPRule) int { return min(len(r.Match.Method), 1) }
	aKind, aLength := path(a)
	bKind, bLength := path(b)
	return cmp.Or(
		cmp.Compare(min(len(b.Hostnames), 1), min(len(a.Hostnames), 1)),
		cmp.Compare(bKind, aKind),
		cmp.Compare(bLength, aLength),
		cmp.Compare(method(b), method(a)),
		cmp.Compare(len(b.Match.Headers), len(a.Match.Headers)),
		cmp.Compare(len(b.Match.QueryParams), len(a.Match.QueryParams)),
	)
}
