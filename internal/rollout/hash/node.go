package hash

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is what a node is made of.
type kind int

const (
	scalar kind = iota
	list
	structure
	mapping
)

// node is a value in its canonical form.
type node struct {
	kind kind
	// empty is a scalar that means the same as none, where a field has it, although it is not the zero value of its type.
	empty bool
	// json is the canonical form of a scalar, and text is what its writer would recognise.
	json, text string
	items      []node
	// members are those of a structure or mapping, by name.
	members []member
}

type member struct {
	name string
	node
}

func (n node) appendJSON(to []byte) []byte {
	switch n.kind {
	case scalar:
		return append(to, n.json...)
	case list:
		to = append(to, '[')
		for i, item := range n.items {
			if i > 0 {
				to = append(to, ',')
			}
			to = item.appendJSON(to)
		}
		return append(to, ']')
	}
	to = append(to, '{')
	for i, member := range n.members {
		if i > 0 {
			to = append(to, ',')
		}
		to = member.appendJSON(append(appendString(to, member.name), ':'))
	}
	return append(to, '}')
}

// String is the value in YAML's flow style, for people.
func (n node) String() string {
	var parts []string
	switch n.kind {
	case scalar:
		return n.text
	case list:
		for _, item := range n.items {
			parts = append(parts, item.String())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	for _, member := range n.members {
		parts = append(parts, member.name+": "+member.String())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// appendString quotes as JSON does. It is written out because what encoding/json escapes has changed between releases of
// Go, and a new compiler must not cause a rollout.
func appendString(to []byte, s string) []byte {
	to = append(to, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c < ' ':
			to = fmt.Appendf(to, `\u%04x`, c)
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			to = utf8.AppendRune(to, r)
			i += size
			continue
		default:
			to = append(to, c)
		}
		i++
	}
	return append(to, '"')
}
