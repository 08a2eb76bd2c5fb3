package convert

import (
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// entryFor returns the entry for a MeshService with the same settings, or nil if there are none, and sets the finding.
func (p *policyNode) entryFor(w successor.Wanted, said *yaml.Node, o Options, f *Finding) *yaml.Node {
	conf, ok := copyOf(said)
	if !ok {
		f.Why = "its YAML aliases expand to too many nodes: write the entry out, or add the new entry yourself"
		return nil
	}
	f.Action = NotNeeded
	if conf == nil {
		f.Why = "the entry is empty"
		return nil
	}
	what := "an entry"
	if p.kind == kumav1alpha1.MeshLoadBalancingStrategyKind {
		aware := field(conf, "localityAwareness")
		switch {
		case aware == nil && field(conf, "<<") != nil || field(aware, "<<") != nil:
			f.Action, f.Why = NeedsPerson, "crossZone does not apply to a MeshService, and the value is a YAML merge: write the value out"
			return nil
		case field(aware, "crossZone") != nil:
			what = "an entry without crossZone,"
			if remove(aware, "crossZone"); len(aware.Content) == 0 {
				remove(conf, "localityAwareness")
			}
			if len(conf.Content) == 0 {
				f.Why = "the entry has only crossZone, which does not apply to a MeshService"
				return nil
			}
		}
	}
	f.Action, f.Section, f.Unchecked = Added, w.Port, !w.Named
	f.Why = fmt.Sprintf("%s for section %s of MeshService %s", what, w.Port, w.Name)
	switch {
	case !w.Named:
		f.Why += fmt.Sprintf("; check the sectionName: %s is right only if the port has no name, and %s", w.Port, cmp.Or(o.Unknown, "no Services were given"))
	case w.Port != w.Number:
		f.Why += ", which is port " + w.Number
	}
	labels := mapping(text(kumav1alpha1.LabelDisplayName), text(w.Name))
	if w.Namespace != "" {
		labels.Content = append(labels.Content, text(kumav1alpha1.LabelNamespace), text(w.Namespace))
	}
	section := text(w.Port)
	section.Style = yaml.DoubleQuotedStyle
	if !w.Named {
		section.LineComment = "# check: if port " + w.Port + " has a name, write the name"
	}
	target := mapping(text("kind"), text(kumav1alpha1.MeshServiceKind), text("labels"), labels, text("sectionName"), section)
	return mapping(text("targetRef"), target, text("default"), conf)
}

// remove removes a key of a mapping.
func remove(node *yaml.Node, key string) {
	for i := len(node.Content) - 2; i >= 0; i -= 2 {
		if node.Content[i].Value == key {
			node.Content = slices.Delete(node.Content, i, i+2)
		}
	}
}

func mapping(keysAndValues ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: keysAndValues}
}

func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

// maxNodes bounds an entry with its aliases expanded.
const maxNodes = 10_000

// copyOf copies a node without comments and with aliases expanded; ok is false if it is too large.
func copyOf(node *yaml.Node) (copied *yaml.Node, ok bool) {
	left := maxNodes
	var visit func(*yaml.Node) *yaml.Node
	visit = func(n *yaml.Node) *yaml.Node {
		if left--; left < 0 {
			return nil
		}
		if n.Kind == yaml.AliasNode {
			return visit(n.Alias)
		}
		c := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
		if c.Tag == "!!merge" {
			// With its tag it would be written as !!merge <<.
			c.Tag = ""
		}
		for _, child := range n.Content {
			if part := visit(child); part != nil {
				c.Content = append(c.Content, part)
			}
		}
		return c
	}
	if node.IsZero() {
		return nil, true
	}
	copied = visit(node)
	return copied, left >= 0
}
