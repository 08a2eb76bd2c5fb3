// Package internal_test holds the rules of the tree: which folder may import which, and what planners may not use.
package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/fairlead/fairlead/"

// passages never import each other.
var passages = []string{"revision", "adoption", "rollout", "meshservice"}

// allowed is what each folder of internal/ may import of the others. Dependencies point one way.
var allowed = map[string][]string{
	"version":  {},
	"passage":  {},
	"kube":     {"passage"},
	"crds":     {"kube", "version"},
	"certs":    {"kube"},
	"faults":   {},
	"operator": append([]string{"passage", "kube", "crds", "certs", "version"}, passages...),
	"cli":      append([]string{"passage", "kube", "crds", "certs", "version", "operator"}, passages...),
}

func init() {
	for _, passage := range passages {
		allowed[passage] = []string{"passage", "kube", "crds", "certs"}
	}
}

// pure are packages in which every file is, and files that are in others, besides every plan.go.
var (
	purePackages = []string{
		"passage", "rollout/hash", "rollout/objects", "adoption/manifest", "adoption/capacity",
		"meshservice/model", "meshservice/policy", "meshservice/convert", "meshservice/successor", "meshservice/generate/desired",
		"meshservice/xds/build", "meshservice/xds/snapshot", "meshservice/xds/resource",
	}
	pureFiles = map[string][]string{
		"adoption/binding":            {"deletion.go", "finished.go", "refusal.go"},
		"adoption/policy":             {"select.go", "placement.go", "conflict_resolution.go", "exclusions.go", "validation.go", "placement_fields.go", "spread.go", "unsupported.go", "activation.go", "available.go"},
		"adoption/work":               {"deletion.go", "record.go", "finished.go", "health.go"},
		"meshservice/consumers":       {"gates.go", "intent.go", "record.go", "slices.go"},
		"revision/controlplane":       {"shared.go", "names.go"},
		"revision/istio":              {"retire.go", "tags.go"},
		"revision/workload":           {"gates.go", "match.go", "overrides.go", "steps.go", "outcome.go", "mark.go", "failures.go", "injection.go", "unmanaged.go"},
		"revision/workload/injection": {"way.go", "pod.go", "verdict.go"},
		"rollout":                     {"service_account.go", "steps.go", "gates.go", "state.go", "generation.go", "progress.go", "legacy.go", "forecast.go", "status_after.go"},
	}
)

func TestImports(t *testing.T) {
	forEachFile(t, func(folder, path string, file *ast.File) {
		from, _, _ := strings.Cut(folder, "/")
		may, known := allowed[from]
		if !known {
			t.Errorf("%s: internal/%s is not among the folders of this test: say what it may import", path, from)
		}
		for _, imported := range importsOf(file) {
			rest, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			to, internal := strings.CutPrefix(rest, "internal/")
			to, _, _ = strings.Cut(to, "/")
			switch {
			case from == "faults" && rest == "test/harness/wait": // both support tests
			case from == "cli" && rest == "charts": // what the chart grants
			case strings.HasPrefix(rest, "api/"), internal && to == from, internal && slices.Contains(may, to):
			case internal && slices.Contains(passages, from) && slices.Contains(passages, to):
				t.Errorf("%s imports %s: passages never import each other", path, rest)
			default:
				t.Errorf("%s imports %s: internal/%s may import only %v and api", path, rest, from, may)
			}
		}
	})
}

// TestPlannersArePure: a plan depends on nothing but what was observed and the time that it is given.
func TestPlannersArePure(t *testing.T) {
	seen := map[string]bool{}
	forEachFile(t, func(folder, path string, file *ast.File) {
		name := filepath.Base(path)
		if name != "plan.go" && !slices.Contains(purePackages, folder) && !slices.Contains(pureFiles[folder], name) || strings.HasPrefix(folder, "cli") {
			return
		}
		seen[folder+"/"+name], seen[folder] = true, true
		for _, imported := range importsOf(file) {
			if imported == "context" || imported == "net/http" || strings.HasPrefix(imported, "k8s.io/client-go/") || strings.HasPrefix(imported, "sigs.k8s.io/controller-runtime") {
				t.Errorf("%s imports %s: planners use no client and no context", path, imported)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Now", "Since", "Until"}, s.Sel.Name) {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s calls time.%s: planners are given the time", path, s.Sel.Name)
				}
			}
			return true
		})
	})
	for _, folder := range purePackages {
		if !seen[folder] {
			t.Errorf("there is no package %s", folder)
		}
	}
	for folder, names := range pureFiles {
		for _, name := range names {
			if !seen[folder+"/"+name] {
				t.Errorf("there is no file %s/%s", folder, name)
			}
		}
	}
}

// forEachFile visits every file of internal/ that is no test.
func forEachFile(t *testing.T, visit func(folder, path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(filepath.Dir(path)), path, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func importsOf(file *ast.File) []string {
	var all []string
	for _, spec := range file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			all = append(all, path)
		}
	}
	return all
}
