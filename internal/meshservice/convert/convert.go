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

// Converted is a file with the added entries.
type Converted struct {
	Text   []byte
	Report Report
}

// Convert adds missing entries to each policy of each document, and reports on each entry for a tag. It is idempotent.
func Convert(in []byte, o Options) ([]byte, Report, error) {
	converted, errs := ConvertAll([][]byte{in}, o)
	return converted[0].Text, converted[0].Report, errs[0]
}

// ConvertAll converts files together: an entry of one may take precedence over that of another. The error of a file is at its
// index.
func ConvertAll(ins [][]byte, o Options) ([]Converted, []error) {
	files, errs := make([]file, len(ins)), make([]error, len(ins))
	var policies []*policyNode
	for i, in := range ins {
		if files[i], errs[i] = parseFile(in); errs[i] == nil {
			policies = append(policies, slices.Concat(files[i].policies...)...)
		}
	}
	c := newConversion(o, policies)
	converted := make([]Converted, len(ins))
	// An entry that is left to a person may keep others from being converted.
	for more := true; more; {
		before := c.leftCount
		for i, f := range files {
			if errs[i] == nil {
				converted[i] = f.convert(c)
			}
		}
		more = c.leftCount > before
	}
	return converted, errs
}

// file is the documents of a file, with the policies of each.
type file struct {
	documents []document
	policies  [][]*policyNode
}

func parseFile(in []byte) (file, error) {
	f := file{documents: documentsIn(in)}
	for number, document := range f.documents {
		root, err := document.parse()
		if err != nil {
			return file{}, fmt.Errorf("document %d, %w", number+1, err)
		}
		var policies []*policyNode
		if root != nil {
			policies = policiesIn(root)
		}
		f.policies = append(f.policies, policies)
	}
	return f, nil
}

func (f file) convert(c *conversion) Converted {
	var out bytes.Buffer
	var report Report
	for number := range f.documents {
		converted, findings := f.documents[number].convert(f.policies[number], c)
		for _, f := range findings {
			f.Document = number + 1
			report.Findings = append(report.Findings, f)
		}
		out.Write(converted)
	}
	return Converted{out.Bytes(), report}
}

func (d *document) convert(policies []*policyNode, c *conversion) ([]byte, []Finding) {
	var changes []change
	var findings []Finding
	for _, p := range policies {
		found, wanted := p.examine(c, c.failed[d] != nil)
		changes = append(changes, wanted...)
		findings = append(findings, found...)
	}
	converted, err := d.insert(changes)
	if c.failed[d] == nil && err != nil {
		c.failed[d] = err
	}
	if err := c.failed[d]; err != nil {
		// A person has to add the entries.
		converted = d.text
		for _, one := range changes {
			c.leave(one.policy, one.after)
		}
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
	policy *policyNode
	list   *yaml.Node
	after  int
	entry  *yaml.Node
}
