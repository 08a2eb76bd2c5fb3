package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	gap = 3
	// readable is how narrow the last column may get before it goes under the others.
	readable = 30
	// indent of what goes under the others.
	indent = 9
)

// Table prints rows under a header. When they would be wider than limit, the last column, which explains the others,
// goes over several lines, or under the others; only then are other cells cut. No limit leaves every row on one line.
func Table(w io.Writer, limit int, header []string, rows [][]string) {
	widths := make([]int, len(header))
	all := append([][]string{header}, rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	last := len(header) - 1
	others := gap * last
	for _, width := range widths[:last] {
		others += width
	}
	if limit > 0 && limit-others < min(readable, widths[last]) {
		stack(w, limit, widths[:last], all)
		return
	}
	if limit > 0 {
		widths[last] = min(widths[last], limit-others)
	}
	for _, row := range all {
		for i, line := range Wrap(row[last], widths[last]) {
			cells := row[:last]
			if i > 0 {
				cells = make([]string, last)
			}
			fmt.Fprintln(w, strings.TrimRight(padded(cells, widths)+line, " "))
		}
	}
}

// PrintRows prints a table after an empty line, if it has rows.
func PrintRows(w io.Writer, format Format, header []string, rows [][]string) {
	if len(rows) > 0 {
		fmt.Fprintln(w)
		Table(w, format.Width(), header, rows)
	}
}

// PrintList prints a table with a row for each item after an empty line, if there are items.
func PrintList[T any](w io.Writer, format Format, header []string, items []T, row func(T) []string) {
	var rows [][]string
	for _, item := range items {
		rows = append(rows, row(item))
	}
	PrintRows(w, format, header, rows)
}

// stack prints the last column under the others, its title included.
func stack(w io.Writer, limit int, widths []int, rows [][]string) {
	narrow(widths, limit-gap*(len(widths)-1))
	for _, row := range rows {
		last := len(row) - 1
		fmt.Fprintln(w, strings.TrimRight(padded(row[:last], widths), " "))
		for _, line := range Wrap(row[last], limit-indent) {
			fmt.Fprintln(w, strings.TrimRight(strings.Repeat(" ", indent)+line, " "))
		}
	}
}

func padded(cells []string, widths []int) string {
	var text strings.Builder
	for i, cell := range cells {
		cell = Cut(cell, widths[i])
		text.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
	}
	return text.String()
}

// narrow makes the widths fit into room.
func narrow(widths []int, room int) {
	excess := -room
	for _, width := range widths {
		excess += width
	}
	for ; excess > 0; excess-- {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		widths[widest]--
	}
}

// Wrap breaks text between words, or within one that is wider than a line.
func Wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		runes := []rune(word)
		for len(runes) > 0 {
			line := &lines[len(lines)-1]
			used := utf8.RuneCountInString(*line)
			switch {
			case used == 0:
				n := min(width, len(runes))
				*line, runes = string(runes[:n]), runes[n:]
			case used+1+len(runes) <= width:
				*line, runes = *line+" "+string(runes), nil
			default:
				lines = append(lines, "")
			}
		}
	}
	return lines
}

func Cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

func YesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// OrDash fills a cell that would otherwise read as a hole in the table.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
