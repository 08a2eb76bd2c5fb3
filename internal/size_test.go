package internal_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What fits into one head, and into one listing.
const (
	maxFileLines    = 500
	maxPackageFiles = 20
	maxPackageLines = 3500
)

// TestSizes: a file holds one idea, and a package few enough of them that its listing is a table of contents. What is generated
// does not count, and the files of a test are not limited in number.
func TestSizes(t *testing.T) {
	files, lines := map[string]int{}, map[string]int{}
	for _, root := range []string{".", "../api", "../cmd", "../hack", "../localkube", "../test"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasPrefix(entry.Name(), "zz_generated") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			n := bytes.Count(text, []byte("\n"))
			if n > maxFileLines {
				t.Errorf("%s has %d lines: more than %d", path, n, maxFileLines)
			}
			if !strings.HasSuffix(path, "_test.go") {
				files[filepath.Dir(path)]++
				lines[filepath.Dir(path)] += n
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for folder := range files {
		if files[folder] > maxPackageFiles {
			t.Errorf("%s has %d files that are no tests: more than %d", folder, files[folder], maxPackageFiles)
		}
		if lines[folder] > maxPackageLines {
			t.Errorf("%s has %d lines that are no tests: more than %d", folder, lines[folder], maxPackageLines)
		}
	}
}
