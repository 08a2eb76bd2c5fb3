package passage

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Code is a reason that programs may compare: one CamelCase word, as in a condition.
type Code string

// Reason says why, once for programs and once for people.
type Reason struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// String is the reason on one line.
func (r Reason) String() string {
	if r.Message == "" {
		return string(r.Code)
	}
	return string(r.Code) + ": " + r.Message
}

// maxMessage bounds what reaches status and events: an API server's refusal can
// quote a whole object.
const maxMessage = 1024

// Because makes a reason, its message cut to a length that status can carry.
func Because[C ~string](code C, format string, args ...any) Reason {
	return Reason{Code: Code(code), Message: shorten(Printable(fmt.Sprintf(format, args...)), maxMessage)}
}

// Printable has the control characters of a text written out, so that no terminal obeys them: messages quote what others wrote. Lines
// and tabs stay.
func Printable(text string) string {
	obeyed := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if !strings.ContainsFunc(text, obeyed) && utf8.ValidString(text) {
		return text
	}
	var printable strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&printable, `\x%02x`, text[i])
		case obeyed(r):
			fmt.Fprintf(&printable, `\x%02x`, r)
		default:
			printable.WriteRune(r)
		}
	}
	return printable.String()
}

// NewReason is Because for a reason that may be absent.
func NewReason[C ~string](code C, format string, args ...any) *Reason {
	reason := Because(code, format, args...)
	return &reason
}

func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// Gate is one condition that must be met before anything starts: it returns why
// it holds, or nil to let the plan pass.
type Gate[In any] func(In) *Reason

// FirstHold asks the gates in order and returns what the first one that holds
// says, or nil when all are open. The list is the documentation: its order is
// the order in which a person would ask.
func FirstHold[In any](in In, gates ...Gate[In]) *Reason {
	for _, gate := range gates {
		if hold := gate(in); hold != nil {
			return hold
		}
	}
	return nil
}

// Hold is what a gate returns when it holds.
func Hold[C ~string](code C, format string, args ...any) *Reason {
	return NewReason(code, format, args...)
}
