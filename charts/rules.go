// Package charts has the rules that the chart grants, for programs that compare them with what a cluster grants.
package charts

import (
	"embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

//go:embed fairlead/generated/*role.yaml
var roles embed.FS

// Rules are those of the ClusterRoles of an operator that runs these passages.
func Rules(passages ...string) ([]rbacv1.PolicyRule, error) {
	files := []string{"role.yaml"}
	for _, passage := range passages {
		files = append(files, passage+"-role.yaml")
		if passage == "revision" {
			files = append(files, "istiod-role.yaml")
		}
	}
	var rules []rbacv1.PolicyRule
	for _, file := range files {
		text, err := roles.ReadFile("fairlead/generated/" + file)
		if err != nil {
			return nil, fmt.Errorf("read what the chart grants: %w", err)
		}
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(text, &role); err != nil {
			return nil, fmt.Errorf("read what the chart grants: %s: %w", file, err)
		}
		rules = append(rules, role.Rules...)
	}
	return rules, nil
}
