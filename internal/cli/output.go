package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// output is the format that -o asks for.
type output string

const (
	outputText output = ""
	outputWide output = "wide"
	outputJSON output = "json"
	outputYAML output = "yaml"
)

// addFlag registers -o with the formats that a command knows besides its usual text.
func (o *output) addFlag(cmd *cobra.Command, formats ...output) {
	names := make([]string, 0, len(formats))
	for _, f := range formats {
		names = append(names, string(f))
	}
	list := strings.Join(names, "|")
	cmd.Flags().VarP(outputValue{o, formats, list}, "output", "o", "output format: "+list)
	complete := cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err)
	}
}

type outputValue struct {
	*output
	formats []output
	list    string
}

func (v outputValue) String() string {
	if v.output == nil {
		return ""
	}
	return string(*v.output)
}

func (v outputValue) Type() string { return "format" }

func (v outputValue) Set(text string) error {
	if !slices.Contains(v.formats, output(text)) {
		return fmt.Errorf("must be one of %s", v.list)
	}
	*v.output = output(text)
	return nil
}

// encode prints for programs; it reports false when the format is one for people.
func (o output) encode(w io.Writer, value any) (bool, error) {
	switch o {
	case outputJSON:
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return true, encoder.Encode(value)
	case outputYAML:
		text, err := yaml.Marshal(value)
		if err != nil {
			return true, err
		}
		_, err = w.Write(text)
		return true, err
	}
	return false, nil
}

// columns is how wide people's output is, unless they ask for -o wide.
const columns = 100

// width is how wide tables are in this format; zero is without limit.
func (o output) width() int {
	if o == outputWide {
		return 0
	}
	return columns
}

const (
	gap = 3
	// readable is how narrow the last column may get before it goes under the others.
	readable = 30
	// indent of what goes under the others.
	indent = 9
)

// table prints rows under a header. When they would be wider than limit, the last column, which explains the others,
// goes over several lines, or under the others; only then are other cells cut. No limit leaves every row on one line.
func table(w io.Writer, limit int, header []string, rows [][]string) {
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
		for i, line := range wrap(row[last], widths[last]) {
			cells := row[:last]
			if i > 0 {
				cells = make([]string, last)
			}
			fmt.Fprintln(w, strings.TrimRight(padded(cells, widths)+line, " "))
		}
	}
}

// stack prints the last column under the others, its title included.
func stack(w io.Writer, limit int, widths []int, rows [][]string) {
	narrow(widths, limit-gap*(len(widths)-1))
	for _, row := range rows {
		last := len(row) - 1
		fmt.Fprintln(w, strings.TrimRight(padded(row[:last], widths), " "))
		for _, line := range wrap(row[last], limit-indent) {
			fmt.Fprintln(w, strings.TrimRight(strings.Repeat(" ", indent)+line, " "))
		}
	}
}

func padded(cells []string, widths []int) string {
	var text strings.Builder
	for i, cell := range cells {
		cell = cut(cell, widths[i])
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

// wrap breaks text between words, or within one that is wider than a line.
func wrap(text string, width int) []string {
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

func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

// orDash fills a cell that would otherwise read as a hole in the table.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
