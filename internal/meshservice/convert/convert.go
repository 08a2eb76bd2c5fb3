// Package convert adds, to policies in YAML or JSON, entries for MeshServices with the settings of the entries for
// kuma.io/service tags. It only adds lines: the rest of a file, with comments and order, stays unchanged.
package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Options of a conversion.
type Options struct {
	// Port of tags without one, as in universal; zero if not known.
	Port uint16
}

// Convert adds missing entries to each policy of each document, and reports on each entry for a tag. It is idempotent.
func Convert(in []byte, o Options) ([]byte, Report, error) {
	var out bytes.Buffer
	var report Report
	for number, document := range documentsIn(in) {
		converted, findings, err := document.convert(o)
		if err != nil {
			return nil, Report{}, fmt.Errorf("document %d, %w", number+1, err)
		}
		for _, f := range findings {
			f.Document = number + 1
			report.Findings = append(report.Findings, f)
		}
		out.Write(converted)
	}
	return out.Bytes(), report, nil
}

func (d document) convert(o Options) ([]byte, []Finding, error) {
	root, err := d.parse()
	if err != nil || root == nil {
		return d.text, nil, err
	}
	var changes []change
	var findings []Finding
	for _, p := range policiesIn(root) {
		found, wanted := p.examine(o)
		changes = append(changes, wanted...)
		findings = append(findings, found...)
	}
	converted, err := d.insert(changes)
	if err != nil {
		// A person has to add the entries.
		converted = d.text
		for i := range findings {
			if findings[i].Action == Added {
				findings[i].Action = NeedsPerson
				findings[i].Why = fmt.Sprintf("%v: write the list as a block, or add the entry yourself", err)
			}
		}
	}
	for i := range findings {
		findings[i].Line += d.line
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return converted, findings, nil
}

// change is an entry to insert after another one of a list.
type change struct {
	list  *yaml.Node
	after int
	entry *yaml.Node
}
