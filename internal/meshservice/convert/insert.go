package convert

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var errPlace = errors.New("an entry cannot be added without changing others")

// insertion is text at an offset.
type insertion struct {
	at   int
	text string
}

// insert adds the entries to the text. It fails if the result would differ in anything else.
func (d document) insert(changes []change) ([]byte, error) {
	if len(changes) == 0 {
		return d.text, nil
	}
	text := newLines(d.text)
	var insertions []insertion
	for _, c := range changes {
		added, err := text.place(c)
		if err != nil {
			return nil, err
		}
		insertions = append(insertions, added)
	}
	slices.SortStableFunc(insertions, func(a, b insertion) int { return a.at - b.at })
	var out bytes.Buffer
	from := 0
	for _, i := range insertions {
		out.Write(d.text[from:i.at])
		out.WriteString(i.text)
		from = i.at
	}
	out.Write(d.text[from:])
	return out.Bytes(), d.check(out.Bytes(), changes)
}

// check compares the value of the new text with the expected one.
func (d document) check(out []byte, changes []change) error {
	want, err := d.parse()
	if err != nil {
		return err
	}
	got, err := document{text: out}.parse()
	if err != nil {
		return errPlace
	}
	// From the last change, so that the indexes of the others stay valid.
	for _, c := range slices.Backward(changes) {
		list := at(want, c.list.Line, c.list.Column)
		if list == nil {
			return errPlace
		}
		list.Content = slices.Insert(list.Content, c.after+1, c.entry)
	}
	if !same(want, got, 0) {
		return errPlace
	}
	return nil
}

// at returns the list that begins at a line and column.
func at(node *yaml.Node, line, column int) *yaml.Node {
	if node.Kind == yaml.SequenceNode && node.Line == line && node.Column == column {
		return node
	}
	for _, child := range node.Content {
		if found := at(child, line, column); found != nil {
			return found
		}
	}
	return nil
}

// maxDepth is how far values may be nested.
const maxDepth = 1000

func same(a, b *yaml.Node, depth int) bool {
	if depth > maxDepth || a.Kind != b.Kind || a.Value != b.Value || tagOf(a) != tagOf(b) || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !same(a.Content[i], b.Content[i], depth+1) {
			return false
		}
	}
	return true
}

// tagOf returns the tag of a node. A merge key has the tag !!merge only when it was parsed.
func tagOf(node *yaml.Node) string {
	if node.Tag == "!!merge" {
		return "!!str"
	}
	return node.ShortTag()
}

// lines is a text with the offset of each line.
type lines struct {
	text   []byte
	starts []int
}

func newLines(text []byte) lines {
	l := lines{text: text}
	at := 0
	for line := range bytes.Lines(text) {
		l.starts = append(l.starts, at)
		at += len(line)
	}
	return l
}

// line returns a line by its number, from one; empty after the last.
func (l lines) line(number int) string {
	if number < 1 || number > len(l.starts) {
		return ""
	}
	return string(l.text[l.starts[number-1]:l.end(number)])
}

func (l lines) end(number int) int {
	if number < len(l.starts) {
		return l.starts[number]
	}
	return len(l.text)
}

// place returns the insertion of an entry.
func (l lines) place(c change) (insertion, error) {
	if c.list.Style&yaml.FlowStyle != 0 {
		return l.placeInFlow(c)
	}
	item := c.list.Content[c.after]
	if isFlow(item) {
		flow(c.entry, false)
	}
	var encoded strings.Builder
	encoder := yaml.NewEncoder(&encoded)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode([]*yaml.Node{c.entry}), encoder.Close()); err != nil {
		return insertion{}, fmt.Errorf("write the entry: %w", err)
	}
	indent := c.list.Column - 1
	last := item.Line
	for number := last + 1; number <= len(l.starts); number++ {
		line := strings.TrimRight(l.line(number), " \t\r\n")
		if line == "" {
			continue
		}
		if len(line)-len(strings.TrimLeft(line, " ")) <= indent {
			break
		}
		last = number
	}
	newline := "\n"
	if strings.HasSuffix(l.line(last), "\r\n") {
		newline = "\r\n"
	}
	var text strings.Builder
	for line := range strings.Lines(encoded.String()) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			text.WriteString(strings.Repeat(" ", indent) + line)
		}
		text.WriteString(newline)
	}
	if !strings.HasSuffix(l.line(last), "\n") {
		return insertion{l.end(last), newline + strings.TrimSuffix(text.String(), newline)}, nil
	}
	return insertion{l.end(last), text.String()}, nil
}

func isFlow(item *yaml.Node) bool {
	return item.Kind == yaml.MappingNode && item.Style&yaml.FlowStyle != 0
}
