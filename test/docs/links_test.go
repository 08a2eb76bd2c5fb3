package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	linkPattern     = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	headingPattern  = regexp.MustCompile(`^#+ (.*)$`)
	notInAnchor     = regexp.MustCompile(`[^\pL\pN _-]`)
	linkTextPattern = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	sourcePattern   = regexp.MustCompile("`((?:api|charts|cmd|hack|internal|localkube|test)/[^`<> ]*)`")
)

// anchor is the name that a heading is linked by.
func anchor(heading string) string {
	text := notInAnchor.ReplaceAllString(linkTextPattern.ReplaceAllString(heading, "$1"), "")
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(text)), " ", "-")
}

func anchors(lines []string) []string {
	var found []string
	inBlock := false
	for _, line := range lines {
		inBlock = inBlock != strings.HasPrefix(line, "```")
		if m := headingPattern.FindStringSubmatch(line); m != nil && !inBlock {
			found = append(found, anchor(m[1]))
		}
	}
	return found
}

// TestLinks follows every link of the documentation to a file of the repository, and to a heading in it.
func TestLinks(t *testing.T) {
	all := slices.Concat(readPages(t, "*.md"), readPages(t, "docs/*.md"), readPages(t, "docs/*/*.md"))
	lines := map[string][]string{}
	for _, page := range all {
		lines[page.Path] = page.Lines
	}
	for _, page := range all {
		for i, line := range page.Lines {
			for _, link := range linkPattern.FindAllStringSubmatch(line, -1) {
				to := page.Path
				if link[1] != "" {
					to = filepath.Join(filepath.Dir(page.Path), link[1])
				}
				_, err := os.Stat(to)
				switch isPage := lines[to] != nil; {
				case strings.Contains(link[1], "://"):
				case err != nil:
					t.Errorf("%s:%d: there is no %s", page.Path, i+1, link[1])
				case link[2] != "" && isPage && !slices.Contains(anchors(lines[to]), link[2]):
					t.Errorf("%s:%d: %s has no heading for #%s", page.Path, i+1, filepath.Base(to), link[2])
				}
			}
		}
	}
}

// TestSources looks for the files and folders that CONTRIBUTING names.
func TestSources(t *testing.T) {
	page := readPages(t, "CONTRIBUTING.md")[0]
	for i, line := range page.Lines {
		for _, source := range sourcePattern.FindAllStringSubmatch(line, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page.Path), source[1])); err != nil {
				t.Errorf("%s:%d: there is no %s", page.Path, i+1, source[1])
			}
		}
	}
}
