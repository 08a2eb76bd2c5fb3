package convert

import (
	"strings"

	"go.yaml.in/yaml/v3"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// policyNode is a policy in a file.
type policyNode struct {
	kind, name string
	to         *yaml.Node
}

// isRoute says whether the policy is a route, which is not converted.
func (p policyNode) isRoute() bool {
	return p.kind == kumav1alpha1.MeshHTTPRouteKind || p.kind == kumav1alpha1.MeshTCPRouteKind
}

func isPolicy(kind string) bool {
	switch kind {
	case kumav1alpha1.MeshTimeoutKind, kumav1alpha1.MeshRetryKind, kumav1alpha1.MeshCircuitBreakerKind,
		kumav1alpha1.MeshLoadBalancingStrategyKind, kumav1alpha1.MeshHTTPRouteKind, kumav1alpha1.MeshTCPRouteKind:
		return true
	}
	return false
}

// header identifies a policy, on Kubernetes and in universal.
type header struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Type       string `yaml:"type"`
	Name       string `yaml:"name"`
	Metadata   struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
}

// policiesIn returns the policies of a document or of the list in it.
func policiesIn(root *yaml.Node) []policyNode {
	var h header
	// A document with other types is no policy.
	if root.Kind != yaml.MappingNode || root.Decode(&h) != nil {
		return nil
	}
	nodes := []*yaml.Node{root}
	if h.APIVersion == "v1" && h.Kind == "List" || h.ours() && strings.HasSuffix(h.Kind, "List") {
		nodes = nil
		if items := field(root, "items"); items != nil && items.Kind == yaml.SequenceNode {
			nodes = items.Content
		}
	}
	var policies []policyNode
	for _, node := range nodes {
		if p, ok := policyIn(node); ok {
			policies = append(policies, p)
		}
	}
	return policies
}

func (h header) ours() bool {
	group, _, _ := strings.Cut(h.APIVersion, "/")
	return group == kumav1alpha1.GroupVersion.Group
}

func policyIn(node *yaml.Node) (policyNode, bool) {
	var h header
	if node.Kind != yaml.MappingNode || node.Decode(&h) != nil {
		return policyNode{}, false
	}
	p := policyNode{kind: h.Kind, name: h.Metadata.Name, to: field(field(node, "spec"), "to")}
	switch {
	case h.ours() && h.Metadata.Namespace != "":
		p.name = h.Metadata.Namespace + "/" + p.name
	case h.APIVersion == "" && h.Kind == "":
		p.kind, p.name = h.Type, h.Name
	case !h.ours():
		return policyNode{}, false
	}
	return p, isPolicy(p.kind) && p.to != nil
}

// field of a mapping, or nil.
func field(node *yaml.Node, key string) *yaml.Node {
	if node = resolveAlias(node); node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// resolveAlias returns the node of a YAML alias.
func resolveAlias(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}
