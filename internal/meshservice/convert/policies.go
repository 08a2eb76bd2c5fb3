package convert

import (
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/sets"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// policyNode is a policy in a file.
type policyNode struct {
	// name is the name as people write it, with the namespace; object is without.
	kind, name, object, namespace, mesh string
	line                                int
	// proxies is spec.targetRef, equal for policies of the same proxies.
	proxies string
	// unknown says that the kind is not known, and that nothing else is set.
	unknown bool
	// to is spec.to as written, and list what it resolves to.
	to, list *yaml.Node
	entries  []entry
}

// isRoute says whether the policy is a route, which is not converted.
func (p *policyNode) isRoute() bool {
	return p.kind == kumav1alpha1.MeshHTTPRouteKind || p.kind == kumav1alpha1.MeshTCPRouteKind
}

// hasTo are the kinds of policies whose spec.to has destinations, also those that Fairlead does not serve.
var hasTo = sets.New(
	kumav1alpha1.MeshTimeoutKind, kumav1alpha1.MeshRetryKind, kumav1alpha1.MeshCircuitBreakerKind, kumav1alpha1.MeshLoadBalancingStrategyKind,
	kumav1alpha1.MeshHTTPRouteKind, kumav1alpha1.MeshTCPRouteKind,
	"MeshAccessLog", "MeshFaultInjection", "MeshHealthCheck", "MeshRateLimit",
)

// hasNoTo are the kinds that have nothing to convert.
var hasNoTo = sets.New(
	kumav1alpha1.MeshKind, kumav1alpha1.DataplaneKind, kumav1alpha1.ZoneIngressKind, kumav1alpha1.MeshServiceKind,
	kumav1alpha1.MeshMultiZoneServiceKind, kumav1alpha1.MeshExternalServiceKind, kumav1alpha1.HostnameGeneratorKind,
	"MeshGateway", "MeshGatewayConfig", "MeshGatewayInstance", "MeshIdentity", "MeshMetric", "MeshPassthrough", "MeshProxyPatch", "MeshTLS",
	"MeshTrace", "MeshTrafficPermission", "MeshTrust", "ContainerPatch", "GlobalSecret", "Secret", "Workload", "Zone", "ZoneEgress",
	"DataplaneInsight", "MeshInsight", "ServiceInsight", "ZoneEgressInsight", "ZoneIngressInsight", "ZoneInsight",
)

// header identifies an object, on Kubernetes and in universal.
type header struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Type       string            `yaml:"type"`
	Name       string            `yaml:"name"`
	Mesh       string            `yaml:"mesh"`
	Labels     map[string]string `yaml:"labels"`
	Metadata   struct {
		Name      string            `yaml:"name"`
		Namespace string            `yaml:"namespace"`
		Labels    map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
}

// objectsIn returns the objects of a document: itself, or those of the list in it.
func objectsIn(root *yaml.Node) []*yaml.Node {
	var h header
	if root.Kind == yaml.SequenceNode {
		return root.Content
	}
	// A document with other types is no object.
	if root.Kind != yaml.MappingNode || root.Decode(&h) != nil {
		return nil
	}
	if h.isList() {
		if items := field(root, "items"); items != nil && items.Kind == yaml.SequenceNode {
			return items.Content
		}
		return nil
	}
	return []*yaml.Node{root}
}

// isList holds for a list of kubectl, and for one of kumactl, which has neither kind nor type.
func (h header) isList() bool {
	return (h.APIVersion == "v1" || h.ours()) && strings.HasSuffix(h.Kind, "List") || h.APIVersion == "" && h.Kind == "" && h.Type == ""
}

// policiesIn returns the policies of a document, and the objects of unknown kinds.
func policiesIn(root *yaml.Node) []*policyNode {
	var policies []*policyNode
	for _, node := range objectsIn(root) {
		if p := policyIn(node); p != nil {
			policies = append(policies, p)
		}
	}
	return policies
}

func (h header) ours() bool {
	group, _, _ := strings.Cut(h.APIVersion, "/")
	return group == kumav1alpha1.GroupVersion.Group
}

// universal says whether an object is in the format of universal, as far as one can tell.
func (h header) universal() bool { return h.APIVersion == "" && h.Kind == "" && h.Type != "" }

func policyIn(node *yaml.Node) *policyNode {
	var h header
	if node.Kind != yaml.MappingNode || node.Decode(&h) != nil || !h.ours() && !h.universal() {
		return nil
	}
	p := &policyNode{kind: h.Kind, name: h.Metadata.Name, object: h.Metadata.Name, namespace: h.Metadata.Namespace, line: node.Line}
	p.mesh = cmp.Or(h.Metadata.Labels[kumav1alpha1.LabelMesh], h.Labels[kumav1alpha1.LabelMesh], h.Mesh, kumav1alpha1.DefaultMesh)
	if p.namespace != "" {
		p.name = p.namespace + "/" + p.name
	}
	if h.universal() {
		p.kind, p.name, p.object, p.namespace = h.Type, h.Name, h.Name, ""
	}
	spec := fieldOrMerged(node, "spec", maxMerges)
	p.proxies = proxiesOf(fieldOrMerged(spec, "targetRef", maxMerges))
	p.to = fieldOrMerged(spec, "to", maxMerges)
	if p.to != nil && spec.Kind == yaml.AliasNode {
		// Other policies may have the same spec.
		p.to = &yaml.Node{Kind: yaml.AliasNode, Alias: resolveAlias(p.to), Line: spec.Line}
	}
	p.list = resolveAlias(p.to)
	hasList := p.list != nil && p.list.Kind == yaml.SequenceNode
	switch {
	case hasTo.Has(p.kind):
		if !hasList {
			return nil
		}
		p.entries = entriesOf(p.list)
	case hasNoTo.Has(p.kind):
		p.unknown = hasList && len(p.list.Content) > 0
	case h.ours():
		p.unknown = p.kind != ""
	default:
		// Any other YAML may have a type as well.
		p.unknown = h.Name != "" && (h.Mesh != "" || hasList)
	}
	if !p.unknown && p.entries == nil {
		return nil
	}
	return p
}

// proxiesOf returns a reference to proxies as text. No reference means all of the mesh.
func proxiesOf(ref *yaml.Node) string {
	value := map[string]any{}
	if ref != nil && ref.Decode(&value) != nil {
		value = map[string]any{"line": ref.Line} // equal to no other
	}
	if len(value) == 0 {
		value["kind"] = kumav1alpha1.MeshKind
	}
	return fmt.Sprint(value)
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

// maxMerges is how deep YAML merges may be nested.
const maxMerges = 3

// fieldOrMerged is field, and finds what a YAML merge brings in as well: as an alias, because nothing can be added there for one
// policy alone.
func fieldOrMerged(node *yaml.Node, key string, depth int) *yaml.Node {
	if found := field(node, key); found != nil || depth == 0 {
		return found
	}
	merge := field(node, "<<")
	sources := []*yaml.Node{merge}
	if merged := resolveAlias(merge); merged != nil && merged.Kind == yaml.SequenceNode {
		sources = merged.Content
	}
	for _, source := range sources {
		if found := fieldOrMerged(source, key, depth-1); found != nil {
			return &yaml.Node{Kind: yaml.AliasNode, Alias: resolveAlias(found), Line: merge.Line}
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
