// Package render draws reports: tables, plans, status, progress and the live view of `fairlead watch`.
package render

import (
	"fmt"
	"io"
	"strings"
)

// Paragraph prints text in lines of at most Columns.
func Paragraph(w io.Writer, text string) {
	fmt.Fprintln(w, strings.Join(Wrap(text, Columns), "\n"))
}

// Note prints a paragraph after an empty line, if there is any text.
func Note(w io.Writer, note string) {
	if note != "" {
		fmt.Fprintln(w)
		Paragraph(w, note)
	}
}

// Count is a number with its noun, in the plural if need be.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
