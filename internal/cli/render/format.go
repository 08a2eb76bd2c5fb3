// Package render draws reports: tables, plans, status, progress and the live view of `fairlead watch`.
package render

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Format is the format that -o asks for.
type Format string

const (
	Text Format = ""
	Wide Format = "wide"
	JSON Format = "json"
	YAML Format = "yaml"
)

// AddFlag registers -o with the formats that a command knows besides its usual text.
func (o *Format) AddFlag(cmd *cobra.Command, formats ...Format) {
	names := make([]string, 0, len(formats))
	for _, f := range formats {
		names = append(names, string(f))
	}
	list := strings.Join(names, "|")
	cmd.Flags().FuncP("output", "o", "output `format`: "+list, func(text string) error {
		if !slices.Contains(names, text) {
			return fmt.Errorf("must be one of %s", list)
		}
		*o = Format(text)
		return nil
	})
	complete := cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err)
	}
}

// Print prints a value for programs, or has it printed as text for people.
func (o Format) Print(w io.Writer, value any, text func()) error {
	switch o {
	case JSON:
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case YAML:
		encoded, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(encoded)
		return err
	}
	text()
	return nil
}

// Columns is how wide people's output is, unless they ask for -o wide.
const Columns = 100

// Width is how wide tables are in this format; zero is without limit.
func (o Format) Width() int {
	if o == Wide {
		return 0
	}
	return Columns
}

// MaxRows is how many items a list shows, unless -o wide asks for all.
const MaxRows = 20

// Limit returns the items that a list shows in this format, and how many more there are.
func Limit[T any](format Format, items []T) (shown []T, more int) {
	if format == Wide || len(items) <= MaxRows {
		return items, 0
	}
	return items[:MaxRows], len(items) - MaxRows
}

// PrintMore tells how many items an indented list has left out.
func PrintMore(w io.Writer, indent string, more int) {
	if more > 0 {
		fmt.Fprintf(w, "%s... and %d more: -o wide shows all\n", indent, more)
	}
}

// Fit wraps text to the width of the format.
func (o Format) Fit(text string) string {
	if o == Wide {
		return text
	}
	return strings.Join(Wrap(text, Columns), "\n")
}

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
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ie"
	case strings.HasSuffix(noun, "ch"):
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
