package convert

import (
	"go.yaml.in/yaml/v3"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// entryFor returns the entry for a MeshService with the same settings, or nil if there are none, and sets the finding.
func (p policyNode) entryFor(s successor.Section, said *yaml.Node, f *Finding) *yaml.Node {
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
		awareness := field(conf, "localityAwareness")
		local := field(awareness, "localZone")
		if local == nil && (field(conf, "<<") != nil || field(awareness, "<<") != nil) {
			f.Action, f.Why = NeedsPerson, "only localZone applies to a MeshService, and the value is a YAML merge: write the value out"
			return nil
		}
		if local == nil {
			f.Why = "the entry has no localZone, the only part that applies to a MeshService"
			return nil
		}
		conf = mapping(text("localityAwareness"), mapping(text("localZone"), local))
		what = "an entry with localZone only,"
	}
	f.Action, f.Why = Added, what+" for section "+s.Port+" of MeshService "+s.Name

	labels := mapping(text(kumav1alpha1.LabelDisplayName), text(s.Name))
	if s.Namespace != "" {
		labels.Content = append(labels.Content, text(kumav1alpha1.LabelNamespace), text(s.Namespace))
	}
	quoted := text(s.Port)
	quoted.Style = yaml.DoubleQuotedStyle
	target := mapping(text("kind"), text(kumav1alpha1.MeshServiceKind), text("labels"), labels, text("sectionName"), quoted)
	return mapping(text("targetRef"), target, text("default"), conf)
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
