package convert

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// placeInFlow returns the insertion of an entry into a list within brackets, as all lists are in JSON.
func (l lines) placeInFlow(c change) (insertion, error) {
	item := c.list.Content[c.after]
	line := l.line(item.Line)
	begin, ok := offset(line, item.Column)
	if !isFlow(item) || !ok || line[begin] != '{' {
		return insertion{}, errPlace
	}
	start := l.starts[item.Line-1] + begin
	length, ok := closing(string(l.text[start:]))
	if !ok {
		return insertion{}, errPlace
	}
	flow(c.entry, len(item.Content) > 0 && item.Content[0].Style&yaml.DoubleQuotedStyle != 0)
	encoded, err := yaml.Marshal(c.entry)
	if err != nil {
		return insertion{}, err
	}
	between := " "
	if before := line[:begin]; strings.TrimSpace(before) == "" {
		// Each item has a line of its own.
		between = "\n" + before
	}
	return insertion{start + length, "," + between + strings.TrimSuffix(string(encoded), "\n")}, nil
}

// flow sets the style of a value within brackets; quoted strings are those of JSON.
func flow(node *yaml.Node, quoted bool) {
	// A comment would end the line.
	node.LineComment = ""
	switch {
	case node.Kind != yaml.ScalarNode:
		node.Style = yaml.FlowStyle
	case quoted && node.ShortTag() == "!!str":
		node.Style = yaml.DoubleQuotedStyle
	case node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		flow(child, quoted)
	}
}

// offset returns the byte offset of a column; columns count characters from one.
func offset(line string, column int) (int, bool) {
	at := 0
	for range column - 1 {
		_, size := utf8.DecodeRuneInString(line[at:])
		at += size
	}
	return at, at < len(line)
}

// closing returns the length of the value within brackets that the text begins with.
func closing(text string) (int, bool) {
	depth := 0
	var quote byte
	for i := 0; i < len(text); i++ {
		char := text[i]
		switch {
		case quote == '"' && char == '\\':
			i++
		case quote != 0:
			if char == quote {
				quote = 0
			}
		case (char == '"' || char == '\'') && opens(text, i):
			quote = char
		case char == '#' && strings.ContainsRune(" \t\n", rune(text[i-1])):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return 0, false
			}
			i += end
		case char == '{' || char == '[':
			depth++
		case char == '}' || char == ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return 0, false
}

// opens says whether a quote begins a value: within an unquoted value it is a character.
func opens(text string, i int) bool {
	before := strings.TrimRight(text[:i], " \t\r\n")
	return before != "" && strings.ContainsRune("{[,:", rune(before[len(before)-1]))
}
