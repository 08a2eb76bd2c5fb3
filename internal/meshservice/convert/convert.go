// Package convert adds, to policies in YAML or JSON, entries for MeshServices with the settings of the entries for
// kuma.io/service tags. It only adds lines: the rest of a file, with comments and order, stays unchanged.
package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

// Options of a conversion.
type Options struct {
	// Port of tags without one, as in universal; zero if not known.
	Port uint16
	// Ports gives ports their names, and Unknown is why it may not know a service.
	Ports   successor.Ports
	Unknown string
}

// Convert adds missing entries to each policy of each document, and reports on each entry for a tag. It is idempotent.
func Convert(in []byte, o Options) ([]byte, Report, error) {
	documents := documentsIn(in)
	policies := make([][]*policyNode, len(documents))
	for number, document := range documents {
		root, err := document.parse()
		if err != nil {
			return nil, Report{}, fmt.Errorf("document %d, %w", number+1, err)
		}
		if root != nil {
			policies[number] = policiesIn(root)
		}
	}
	rivals := rivalsIn(slices.Concat(policies...))
	var out bytes.Buffer
	var report Report
	for number, document := range documents {
		converted, findings := document.convert(policies[number], o, rivals)
		for _, f := range findings {
			f.Document = number + 1
			report.Findings = append(report.Findings, f)
		}
		out.Write(converted)
	}
	return out.Bytes(), report, nil
}

func (d document) convert(policies []*policyNode, o Options, rivals rivals) ([]byte, []Finding) {
	var changes []change
	var findings []Finding
	for _, p := range policies {
		found, wanted := p.examine(o, rivals)
		changes = append(changes, wanted...)
		findings = append(findings, found...)
	}
	converted, err := d.insert(changes)
	if err != nil {
		// A person has to add the entries.
		converted = d.text
		for i := range findings {
			if findings[i].Action == Added {
				findings[i].Action, findings[i].Unchecked = NeedsPerson, false
				findings[i].Why = fmt.Sprintf("%v: write the list as a block, or add the entry yourself", err)
			}
		}
	}
	for i := range findings {
		findings[i].Line += d.line
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return converted, findings
}

// change is an entry to insert after another one of a list.
type change struct {
	list  *yaml.Node
	after int
	entry *yaml.Node
}
