package convert

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// entry is an entry of a policy.
type entry struct {
	TargetRef successor.Ref `yaml:"targetRef"`
	Default   yaml.Node     `yaml:"default"`
	Rules     []struct {
		Default struct {
			BackendRefs []yaml.Node `yaml:"backendRefs"`
		} `yaml:"default"`
	} `yaml:"rules"`
}

// entriesOf decodes the entries of a policy. One that cannot be decoded has no reference.
func entriesOf(list *yaml.Node) []entry {
	entries := make([]entry, len(list.Content))
	for i, item := range list.Content {
		if item.Decode(&entries[i]) != nil {
			entries[i] = entry{}
		}
	}
	return entries
}

// examine returns a finding for each entry for a tag without a successor, and the entries to add.
func (p policyNode) examine(o Options) ([]Finding, []change) {
	list := resolveAlias(p.to)
	if list.Kind != yaml.SequenceNode {
		return nil, nil
	}
	entries := entriesOf(list)
	refs := make([]successor.Ref, len(entries))
	for i, e := range entries {
		refs[i] = e.TargetRef
	}
	converted := successor.Converted(refs, o.Port, p.isRoute())
	var findings []Finding
	var changes []change
	for i, e := range entries {
		if converted[i] {
			continue
		}
		if !e.TargetRef.RefersToTag() {
			findings = append(findings, p.backends(i, e)...)
			continue
		}
		f := p.finding(fmt.Sprintf("spec.to[%d].targetRef", i), list.Content[i].Line, e.TargetRef.Name)
		wanted, why := e.TargetRef.Successor(o.Port)
		switch {
		case p.isRoute():
			f.Why = "routes are not converted: decide where the requests go, and add an entry with labels and sectionName"
		case why != "":
			f.Why = why
		case list != p.to:
			f.Why = fmt.Sprintf("spec.to in line %d is a YAML alias: write the list out there, or add the entry yourself", p.to.Line)
		default:
			if added := p.entryFor(wanted, &e.Default, &f); added != nil {
				changes = append(changes, change{list, i, added})
			}
		}
		findings = append(append(findings, f), p.backends(i, e)...)
	}
	return findings, changes
}

func (p policyNode) finding(field string, line int, service string) Finding {
	return Finding{Line: line, Kind: p.kind, Policy: p.name, Field: field, Service: service, Action: NeedsPerson}
}

// backends returns a finding for each backend of a route that is a tag.
func (p policyNode) backends(index int, e entry) []Finding {
	var findings []Finding
	for i, rule := range e.Rules {
		for j, node := range rule.Default.BackendRefs {
			var r successor.Ref
			if node.Decode(&r) != nil || !r.RefersToTag() {
				continue
			}
			f := p.finding(fmt.Sprintf("spec.to[%d].rules[%d].default.backendRefs[%d]", index, i, j), node.Line, r.Name)
			f.Why = "the backend has the instances of all zones: decide whether it should, and name a MeshService or MeshMultiZoneService with its port"
			findings = append(findings, f)
		}
	}
	return findings
}
