package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// document is a YAML document of a file.
type document struct {
	text []byte
	// line is the number of lines before it.
	line int
}

// documentsIn splits a file into documents, which together are the file byte for byte.
func documentsIn(in []byte) []document {
	documents := []document{{}}
	line, ended := 0, false
	for text := range bytes.Lines(in) {
		if (ended || isMarker(text, "---")) && len(documents[len(documents)-1].text) > 0 {
			documents = append(documents, document{line: line})
		}
		last := &documents[len(documents)-1]
		last.text = append(last.text, text...)
		ended = isMarker(text, "...")
		line++
	}
	return documents
}

// isMarker says whether a line starts or ends a document: YAML allows these marks nowhere else at the start of a line.
func isMarker(line []byte, mark string) bool {
	rest, found := bytes.CutPrefix(line, []byte(mark))
	return found && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// parse returns the value of the document; nil if it has none.
func (d document) parse() (*yaml.Node, error) {
	if d.hasNothing() {
		return nil, nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(d.text))
	var node yaml.Node
	switch err := decoder.Decode(&node); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, d.locate(err)
	}
	// The first Decode stops after the value: the rest may be malformed.
	if err := decoder.Decode(new(yaml.Node)); err != nil && !errors.Is(err, io.EOF) {
		return nil, d.locate(err)
	}
	return node.Content[0], nil
}

// hasNothing says that the document has comments and directives only.
func (d document) hasNothing() bool {
	for line := range bytes.Lines(d.text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

var lineInError = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// locate translates the line of an error to that of the file.
func (d document) locate(err error) error {
	text := err.Error()
	found := lineInError.FindStringSubmatch(text)
	line := 1
	if len(found) > 1 && found[1] != "" {
		if n, err := strconv.Atoi(found[1]); err == nil {
			line = n
		}
	}
	return fmt.Errorf("line %d: %s: correct the YAML", d.line+line, lineInError.ReplaceAllString(text, ""))
}
