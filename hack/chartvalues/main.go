// Command chartvalues writes a page with every value of the chart, its default, and what the comment in values.yaml says of it.
package main

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: chartvalues VALUES PAGE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(values, page string) error {
	text, err := os.ReadFile(values)
	if err != nil {
		return err
	}
	table, err := describe(text)
	if err != nil {
		return fmt.Errorf("%s: %w", values, err)
	}
	return os.WriteFile(page, []byte(head+table), 0o644)
}

const head = `# Values of the chart

*[Install](install.md)*

<!-- ` + "`make generate`" + ` writes this page from charts/fairlead/values.yaml. -->

A schema refuses values that are not in this table.

| value | default | |
|---|---|---|
`

// describe is a row for every value, and for every comment on a section of them.
func describe(values []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return "", err
	}
	var rows strings.Builder
	if err := describeMapping(&rows, "", document.Content[0]); err != nil {
		return "", err
	}
	return rows.String(), nil
}

func describeMapping(rows *strings.Builder, prefix string, mapping *yaml.Node) error {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name, comment := prefix+key.Value, commentOf(key)
		isSection := isCommented(value)
		switch {
		case isSection && comment != "":
			fmt.Fprintf(rows, "| **`%s`** | | %s |\n", name, comment)
		case isSection:
		case comment == "":
			return fmt.Errorf("%s has no comment that says what it is for", name)
		default:
			text, err := defaultOf(value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Fprintf(rows, "| `%s` | %s | %s |\n", name, text, comment)
		}
		if isSection {
			if err := describeMapping(rows, name+".", value); err != nil {
				return err
			}
		}
	}
	return nil
}

// isCommented tells a section, whose values have comments of their own, from a value that is a mapping.
func isCommented(node *yaml.Node) bool {
	if node.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].HeadComment != "" || isCommented(node.Content[i+1]) {
			return true
		}
	}
	return false
}

// commentOf is the comment above a key, as one line.
func commentOf(key *yaml.Node) string {
	// A blank line ends what belongs to another key.
	paragraphs := strings.Split(key.HeadComment, "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.ReplaceAll(strings.Join(words, " "), "|", `\|`)
}

func defaultOf(value *yaml.Node) (string, error) {
	if value.Kind == yaml.ScalarNode && value.Value == "" {
		return "", nil
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return "", err
	}
	compact, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		return "", err
	}
	shown := string(compact)
	if value.Kind == yaml.ScalarNode {
		shown = value.Value
	}
	return "`" + shown + "`", nil
}
