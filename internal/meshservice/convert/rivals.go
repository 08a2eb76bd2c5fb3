package convert

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// rival is an entry for a MeshService itself, which takes precedence over one for its tag. It might not over the entry that
// replaces the one for the tag.
type rival struct {
	policy *policyNode
	index  int
}

// rivals are by the kind of the policy.
type rivals map[string][]rival

// String names the entry.
func (r rival) String() string { return fmt.Sprintf("spec.to[%d] of %s", r.index, r.policy.name) }

func rivalsIn(policies []*policyNode) rivals {
	all := rivals{}
	for _, p := range policies {
		for i, e := range p.entries {
			if e.TargetRef.Kind == kumav1alpha1.MeshServiceKind && !e.TargetRef.RefersToTag() {
				all[p.kind] = append(all[p.kind], rival{p, i})
			}
		}
	}
	return all
}

// of returns an entry whose precedence over an entry for a tag would end with a new entry for a section: one for the whole
// MeshService, or one for the same section in another policy. That of a policy which also has an entry for the tag is a
// converted one.
func (all rivals) of(p *policyNode, w successor.Wanted, conf *yaml.Node, o Options) (rival, bool) {
	for _, r := range all[p.kind] {
		e := r.policy.entries[r.index]
		if !e.TargetRef.MayTarget(w, r.policy.namespace) || !overlap(conf, &e.Default) {
			continue
		}
		if e.TargetRef.SectionName == "" || r.policy != p && !r.policy.hasTagOf(w, o) {
			return r, true
		}
	}
	return rival{}, false
}

// hasTagOf says whether the policy has an entry for the tag that the section replaces.
func (p *policyNode) hasTagOf(w successor.Wanted, o Options) bool {
	for _, e := range p.entries {
		if !e.TargetRef.RefersToTag() {
			continue
		}
		if its, _ := e.TargetRef.Successor(o.Port, o.Ports); its.Section == w.Section {
			return true
		}
	}
	return false
}

// overlap says whether two values set the same field, or may.
func overlap(a, b *yaml.Node) bool {
	left := maxNodes
	var visit func(a, b *yaml.Node) bool
	visit = func(a, b *yaml.Node) bool {
		if left--; left < 0 {
			return true
		}
		a, b = resolveAlias(a), resolveAlias(b)
		switch {
		case a == nil || b == nil || a.IsZero() || b.IsZero() || a.Tag == "!!null" || b.Tag == "!!null":
			return false
		case a.Kind != yaml.MappingNode || b.Kind != yaml.MappingNode:
			return true
		case field(a, "<<") != nil || field(b, "<<") != nil:
			return len(a.Content) > 0 && len(b.Content) > 0
		}
		for i := 0; i+1 < len(a.Content); i += 2 {
			if other := field(b, a.Content[i].Value); other != nil && visit(a.Content[i+1], other) {
				return true
			}
		}
		return false
	}
	return visit(a, b)
}
