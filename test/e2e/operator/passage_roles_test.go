package operator_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// TestChartRoleOfEachPassage shows what each passage is granted when it runs alone, and that the page on permissions says so.
func TestChartRoleOfEachPassage(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	for passage, without := range map[string][]string{
		"revision":    nil,
		"adoption":    {"roles", "rolebindings", "clusterroles", "mutatingwebhookconfigurations", "pods"},
		"rollout":     {"clusterroles", "mutatingwebhookconfigurations", "namespaces"},
		"meshservice": {"secrets", "configmaps", "roles", "rolebindings", "clusterroles", "mutatingwebhookconfigurations"},
	} {
		t.Run(passage, func(t *testing.T) {
			granted := map[permission]bool{}
			for _, object := range rendered(t, map[string]any{"passages": []any{passage}}).Objects {
				if object.GetKind() != "ClusterRole" || object.GetName() != "fairlead-system:fairlead" &&
					object.GetName() != "fairlead-system:fairlead-istiod" && object.GetName() != "fairlead-system:fairlead-"+passage {
					continue
				}
				var role rbacv1.ClusterRole
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
					t.Fatal(err)
				}
				maps.Copy(granted, permissionsOf(role.Rules))
			}
			for p := range granted {
				for _, resource := range without {
					if name, _, _ := strings.Cut(p.resource, "."); name == resource {
						t.Errorf("it may %s", p)
					}
				}
			}
			if row := fmt.Sprintf("| `[%s]` | %d |", passage, len(granted)); !strings.Contains(string(page), row) {
				t.Errorf("docs/operator.md has no row %s", row)
			}
		})
	}
}
