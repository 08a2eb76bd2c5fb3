package rollout

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlannerIsPure: a plan depends on nothing but what was observed and the time that it is given.
func TestPlannerIsPure(t *testing.T) {
	files := []string{"plan.go", "steps.go", "gates.go", "state.go", "generation.go", "progress.go", "legacy.go", "summary.go"}
	for _, folder := range []string{"objects", "hash"} {
		found, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no files in %s: %v", folder, err)
		}
		files = append(files, found...)
	}
	forbidden := []string{`"context"`, `"net/http"`, `"k8s.io/client-go`, `"sigs.k8s.io/controller-runtime`}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "time.Now(") {
			t.Errorf("%s calls time.Now", file)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range parsed.Imports {
			for _, path := range forbidden {
				if strings.HasPrefix(imported.Path.Value, path) {
					t.Errorf("%s imports %s", file, imported.Path.Value)
				}
			}
		}
	}
}
