package convert

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// entry is an entry of a policy.
type entry struct {
	TargetRef successor.Ref `yaml:"targetRef"`
	Default   yaml.Node     `yaml:"default"`
	Rules     []struct {
		Default struct {
			BackendRefs []yaml.Node `yaml:"backendRefs"`
			Filters     []yaml.Node `yaml:"filters"`
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

// examine returns a finding for each entry for a tag without a successor and for each wrong sectionName, and the entries
// to add. Failed says that none can be added to the document.
func (p *policyNode) examine(c *conversion, failed bool) ([]Finding, []change) {
	o := c.options
	if p.unknown {
		f := p.finding("kind", p.line, "")
		f.Action, f.Why = UnknownKind, "convert does not know this kind: look for values of kuma.io/service in it yourself"
		return []Finding{f}, nil
	}
	refs := make([]successor.Ref, len(p.entries))
	for i, e := range p.entries {
		refs[i] = e.TargetRef
	}
	converted := successor.Converted(refs, o.Port, o.Ports, p.isRoute())
	var findings []Finding
	var changes []change
	for i, e := range p.entries {
		if converted[i] {
			continue
		}
		line := p.list.Content[i].Line
		if !e.TargetRef.RefersToTag() {
			findings = append(append(findings, p.misnamed(i, line, e, o)...), p.backends(i, e)...)
			continue
		}
		f := p.finding(fmt.Sprintf("spec.to[%d].targetRef", i), line, e.TargetRef.Name)
		wanted, why := e.TargetRef.Successor(o.Port, o.Ports)
		rival, rivalled := c.rivalOf(p, wanted, &e.Default)
		switch {
		case p.isRoute():
			section := "sectionName"
			if wanted.Named {
				section = model.SectionText(wanted.Port)
			}
			f.Why = "routes are not converted: decide where the requests go, and add an entry with labels and " + section
		case why != "":
			f.Why = why
		case rivalled:
			f.Why = fmt.Sprintf("%s sets the same fields for the MeshService itself, and would no longer take precedence: add an entry with sectionName, without these fields", rival)
		case p.list != p.to:
			f.Why = fmt.Sprintf("spec.to in line %d is a YAML alias or merge: write the list out there, or add the entry yourself", p.to.Line)
		default:
			added := p.entryFor(wanted, &e.Default, o, &f)
			if other, overtakes := c.overtaken(p, i); added != nil && overtakes && !failed {
				f = p.finding(f.Field, line, e.TargetRef.Name)
				f.Why = fmt.Sprintf("%s sets the same fields for this kuma.io/service, and needs you: an entry for the MeshService added here alone would take precedence over it; add one for each", other)
			} else if added != nil {
				changes = append(changes, change{p, p.list, i, added})
			}
		}
		if f.Action == NeedsPerson {
			c.leave(p, i)
		}
		findings = append(append(findings, f), p.backends(i, e)...)
	}
	return findings, changes
}

// misnamed returns a finding for an entry that calls a port by its number although the port has a name.
func (p *policyNode) misnamed(index, line int, e entry, o Options) []Finding {
	section, name, misnamed := e.TargetRef.Misnamed(o.Ports)
	if !misnamed {
		return nil
	}
	f := p.finding(fmt.Sprintf("spec.to[%d].targetRef.sectionName", index), line, section.Name)
	f.Why = fmt.Sprintf("port %s of MeshService %s is named %s, and sectionName takes the name: write %s", section.Port, section.Name, name, model.SectionText(name))
	return []Finding{f}
}

func (p *policyNode) finding(field string, line int, service string) Finding {
	return Finding{Line: line, Kind: p.kind, Policy: p.name, Field: field, Service: service, Action: NeedsPerson}
}

// backends returns a finding for each backend of a route that is a tag, and for each tag that requests are mirrored to.
func (p *policyNode) backends(index int, e entry) []Finding {
	var findings []Finding
	examine := func(what, path string, node *yaml.Node) {
		var r successor.Ref
		if node.Decode(&r) != nil || !r.RefersToTag() {
			return
		}
		f := p.finding(fmt.Sprintf("spec.to[%d].%s", index, path), node.Line, r.Name)
		f.Why = fmt.Sprintf("the %s has the instances of all zones: decide whether it should, and name a MeshService or MeshMultiZoneService with its port", what)
		findings = append(findings, f)
	}
	for i, rule := range e.Rules {
		for j := range rule.Default.BackendRefs {
			examine("backend", fmt.Sprintf("rules[%d].default.backendRefs[%d]", i, j), &rule.Default.BackendRefs[j])
		}
		for j, node := range rule.Default.Filters {
			var filter struct {
				RequestMirror struct {
					BackendRef yaml.Node `yaml:"backendRef"`
				} `yaml:"requestMirror"`
			}
			if node.Decode(&filter) == nil {
				examine("mirror", fmt.Sprintf("rules[%d].default.filters[%d].requestMirror.backendRef", i, j), &filter.RequestMirror.BackendRef)
			}
		}
	}
	return findings
}
