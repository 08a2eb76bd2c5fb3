// Package convert adds, to policies in YAML or JSON, the entries for MeshServices that say the same as those for
// kuma.io/service tags. It only ever adds lines: comments, order and what else is in a file stay as they are.
package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Options are what files do not tell.
type Options struct {
	// Port is that of tags that do not name one, as those of universal; zero if it is not known.
	Port uint16
}

// Convert adds the entries that are missing, in each policy of each document, and reports on each entry of the old kind.
// What it has converted, it leaves as it is.
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
		// What cannot be written here is left to a person, and nothing is said to be added.
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

// change is an entry that is to come after another one of a list.
type change struct {
	list  *yaml.Node
	after int
	entry *yaml.Node
}
