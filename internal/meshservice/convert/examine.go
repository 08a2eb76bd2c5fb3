package convert

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// ref is a reference to a destination, of a policy or of a route's backend.
type ref struct {
	Kind        string            `yaml:"kind"`
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace"`
	Labels      map[string]string `yaml:"labels"`
	SectionName string            `yaml:"sectionName"`
	Port        string            `yaml:"port"`
}

// entry is one of a policy.
type entry struct {
	TargetRef ref       `yaml:"targetRef"`
	Default   yaml.Node `yaml:"default"`
	Rules     []struct {
		Default struct {
			BackendRefs []yaml.Node `yaml:"backendRefs"`
		} `yaml:"default"`
	} `yaml:"rules"`
}

// entriesOf reads the entries of a policy. One that cannot be read refers to nothing.
func entriesOf(list *yaml.Node) []entry {
	entries := make([]entry, len(list.Content))
	for i, item := range list.Content {
		if item.Decode(&entries[i]) != nil {
			entries[i] = entry{}
		}
	}
	return entries
}

// section is a port of a MeshService, in any zone.
type section struct{ name, namespace, port string }

// old says whether a reference means a tag, or may.
func (r ref) old() bool {
	if r.Kind == kumav1alpha1.MeshServiceSubsetKind {
		return true
	}
	if r.Kind != kumav1alpha1.MeshServiceKind || r.Name == "" || r.SectionName != "" || r.Port != "" || r.Labels != nil {
		return false
	}
	_, _, _, kubernetes := model.ParseKubernetesTag(r.Name)
	return kubernetes || r.Namespace == ""
}

// successor is the section that stands for the tag, or why it is not known; perhaps its port only is not.
func (r ref) successor(o Options) (section, string) {
	if r.Kind == kumav1alpha1.MeshServiceSubsetKind {
		return section{}, "a MeshService has no subsets: make one for these tags, and add an entry for it"
	}
	s := section{name: r.Name}
	if name, namespace, port, ok := model.ParseKubernetesTag(r.Name); ok {
		s = section{name, namespace, strconv.Itoa(int(port))}
	} else if o.Port != 0 {
		s.port = strconv.Itoa(int(o.Port))
	}
	switch {
	case len(validation.IsDNS1123Label(s.name)) > 0:
		return section{}, "no MeshService has such a name, so that none stands for it"
	case s.port == "":
		return s, "it does not tell the port: give --port, or add an entry with a sectionName"
	}
	return s, ""
}

// section is the section that a reference of the new kind means; ok says whether it is one.
func (r ref) section() (s section, ok bool) {
	if r.Kind != kumav1alpha1.MeshServiceKind || r.Name != "" || r.SectionName == "" {
		return section{}, false
	}
	for label, value := range r.Labels {
		switch label {
		case kumav1alpha1.LabelDisplayName:
			s.name = value
		case kumav1alpha1.LabelNamespace, kumav1alpha1.LabelKubernetesNamespace:
			s.namespace = value
		default:
			return section{}, false
		}
	}
	s.port = r.SectionName
	return s, s.name != ""
}

// examine finds the entries of the old kind that have no new one, and makes those that can be made.
func (p writtenPolicy) examine(o Options) ([]Finding, []change) {
	list := deref(p.to)
	if list.Kind != yaml.SequenceNode {
		return nil, nil
	}
	entries := entriesOf(list)
	there := map[section]int{}
	for _, e := range entries {
		if s, ok := e.TargetRef.section(); ok {
			there[s]++
		}
	}
	var findings []Finding
	var changes []change
	for i, e := range entries {
		if !e.TargetRef.old() {
			findings = append(findings, p.backends(i, e)...)
			continue
		}
		f := p.finding(fmt.Sprintf("spec.to[%d].targetRef", i), list.Content[i].Line, e.TargetRef.Name)
		wanted, why := e.TargetRef.successor(o)
		switch {
		case why == "" && there[wanted] > 0:
			there[wanted]--
			continue
		case wanted.name != "" && i+1 < len(entries) && entries[i+1].TargetRef.succeeds(e.TargetRef, wanted):
			continue
		case p.isRoute():
			f.Why = "routes stay with their kuma.io/service: see where its requests should go, and add an entry by labels and sectionName"
		case why != "":
			f.Why = why
		case list != p.to:
			f.Why = fmt.Sprintf("spec.to in line %d refers to it: write it out there, or add the entry yourself", p.to.Line)
		default:
			if added := p.entryFor(wanted, &e.Default, &f); added != nil {
				changes = append(changes, change{list, i, added})
			}
		}
		findings = append(append(findings, f), p.backends(i, e)...)
	}
	return findings, changes
}

// succeeds says whether a reference, next to an old one, is to the same MeshService by the name of a port, or by a port that
// the old one does not tell: then somebody knew it.
func (r ref) succeeds(old ref, wanted section) bool {
	s, ok := r.section()
	_, err := strconv.Atoi(s.port)
	_, _, _, told := model.ParseKubernetesTag(old.Name)
	return ok && (err != nil || !told) && s.name == wanted.name && s.namespace == wanted.namespace
}

func (p writtenPolicy) finding(field string, line int, service string) Finding {
	return Finding{Line: line, Kind: p.kind, Policy: p.name, Field: field, Service: service, Action: NeedsPerson}
}

// backends finds the references of the old kind in the rules of a route.
func (p writtenPolicy) backends(index int, e entry) []Finding {
	var findings []Finding
	for i, rule := range e.Rules {
		for j, node := range rule.Default.BackendRefs {
			var r ref
			if node.Decode(&r) != nil || !r.old() {
				continue
			}
			f := p.finding(fmt.Sprintf("spec.to[%d].rules[%d].default.backendRefs[%d]", index, i, j), node.Line, r.Name)
			f.Why = "requests go to the instances of all zones: see whether they should, and name a MeshService or MeshMultiZoneService with its port"
			findings = append(findings, f)
		}
	}
	return findings
}
