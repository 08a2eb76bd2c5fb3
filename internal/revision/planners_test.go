package revision

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestPlannersArePure holds the rule that a planner imports no client and no context, and takes the time from its caller.
func TestPlannersArePure(t *testing.T) {
	for _, file := range []string{
		"istio/plan.go", "istio/retire.go",
		"controlplane/plan.go", "controlplane/shared.go", "controlplane/names.go",
		"tag/plan.go", "helm/installer/plan.go",
		"workload/plan.go", "workload/gates.go", "workload/match.go", "workload/overrides.go", "workload/steps.go",
		"workload/outcome.go", "workload/mark.go", "workload/failures.go", "workload/legacy.go",
	} {
		t.Run(file, func(t *testing.T) {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				if path == "context" || strings.HasPrefix(path, "k8s.io/client-go/") || strings.HasPrefix(path, "sigs.k8s.io/controller-runtime") {
					t.Errorf("imports %s", path)
				}
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Now" {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
						t.Error("calls time.Now")
					}
				}
				return true
			})
		})
	}
}
