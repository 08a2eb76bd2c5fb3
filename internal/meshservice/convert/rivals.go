package convert

import (
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// conversion is what policies mean to one another while they are converted.
type conversion struct {
	options Options
	// direct are the entries for a MeshService itself, by the kind of the policy. They take precedence over one for its tag,
	// and might not over the entry that replaces the one for the tag.
	direct map[string][]policyEntry
	// left are the entries for a tag that a person has to convert, by the kind of the policy and the tag, and leftCount is how
	// many. They might lose their precedence over entries for the same tag that are converted.
	left      map[string][]policyEntry
	leftCount int
	// failed are the documents into which nothing can be inserted.
	failed map[*document]error
}

// policyEntry is an entry of a policy.
type policyEntry struct {
	policy *policyNode
	index  int
}

// String names the entry.
func (e policyEntry) String() string { return fmt.Sprintf("spec.to[%d] of %s", e.index, e.policy.name) }

// precedes says whether an entry takes precedence over another one for the same tag: of one policy the later one, and of two
// that are for the same proxies that of the first by name. Of others, either might.
func (e policyEntry) precedes(other policyEntry) bool {
	p, q := e.policy, other.policy
	if p == q {
		return e.index >= other.index
	}
	return p.proxies == q.proxies && cmp.Or(cmp.Compare(p.object, q.object), cmp.Compare(p.namespace, q.namespace)) < 0
}

func newConversion(o Options, policies []*policyNode) *conversion {
	c := &conversion{options: o, direct: map[string][]policyEntry{}, left: map[string][]policyEntry{}, failed: map[*document]error{}}
	for _, p := range policies {
		for i, e := range p.entries {
			if e.TargetRef.Kind == kumav1alpha1.MeshServiceKind && !e.TargetRef.RefersToTag() {
				c.direct[p.kind] = append(c.direct[p.kind], policyEntry{p, i})
			}
		}
	}
	return c
}

// rivalOf returns an entry whose precedence over an entry for a tag would end with a new entry for a section: one for the whole
// MeshService, or one for the same section in another policy. That of a policy which also has an entry for the tag is a
// converted one.
func (c *conversion) rivalOf(p *policyNode, w successor.Wanted, conf *yaml.Node) (policyEntry, bool) {
	for _, r := range c.direct[p.kind] {
		e := r.policy.entries[r.index]
		if r.policy.mesh != p.mesh || !e.TargetRef.MayTarget(w, r.policy.namespace) || !overlap(conf, &e.Default) {
			continue
		}
		if e.TargetRef.SectionName == "" || r.policy != p && !r.policy.hasTagOf(w, c.options) {
			return r, true
		}
	}
	return policyEntry{}, false
}

// leave notes that a person has to convert an entry for a tag. Subsets do not apply to a MeshService.
func (c *conversion) leave(p *policyNode, index int) {
	ref, entry := p.entries[index].TargetRef, policyEntry{p, index}
	key := p.kind + " " + ref.Name
	if ref.Kind != kumav1alpha1.MeshServiceKind || slices.Contains(c.left[key], entry) {
		return
	}
	c.left[key] = append(c.left[key], entry)
	c.leftCount++
}

// overtaken returns an entry for the same tag that is left to a person, and whose precedence would end if this one were
// converted.
func (c *conversion) overtaken(p *policyNode, index int) (policyEntry, bool) {
	e := p.entries[index]
	for _, other := range c.left[p.kind+" "+e.TargetRef.Name] {
		if other.policy.mesh != p.mesh || (policyEntry{p, index}).precedes(other) {
			continue
		}
		if overlap(&e.Default, &other.policy.entries[other.index].Default) {
			return other, true
		}
	}
	return policyEntry{}, false
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
