package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`")
	definedTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)\(`)
)

// testsInTree are the names of all tests, fuzz targets and benchmarks.
func testsInTree(t *testing.T) map[string]bool {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "dist"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, defined := range definedTest.FindAllSubmatch(text, -1) {
			found[string(defined[1])] = true
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d tests: %v", len(found), err)
	}
	return found
}

// Every promise of the page on security names a test, and every test that the page names exists.
func TestSecurityPromises(t *testing.T) {
	exists := testsInTree(t)
	page := readPages(t, "docs/security.md")[0]
	promises, inPromises := 0, false
	for i, line := range page.Lines {
		named := namedTest.FindAllStringSubmatch(line, -1)
		for _, test := range named {
			if !exists[test[1]] {
				t.Errorf("%s:%d: there is no %s", page.Path, i+1, test[1])
			}
		}
		switch {
		case strings.HasPrefix(line, "| promise |"):
			inPromises = true
		case !strings.HasPrefix(line, "|"):
			inPromises = false
		case inPromises && !strings.HasPrefix(line, "|---"):
			promises++
			if len(named) == 0 {
				t.Errorf("%s:%d: no test holds this promise: %s", page.Path, i+1, line)
			}
		}
	}
	if promises < 20 {
		t.Errorf("%d promises are found", promises)
	}
}
