package desired

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// ReachableServices parses the annotation with values of kuma.io/service. An empty list becomes one of an empty name, since
// a list without names means all.
func ReachableServices(text string) []string {
	var all []string
	for service := range strings.SplitSeq(text, ",") {
		if service = strings.TrimSpace(service); service != "" {
			all = append(all, service)
		}
	}
	if all == nil {
		return []string{""}
	}
	return all
}

// reachableKinds are the supported kinds. A MeshExternalService is accepted and ignored.
var reachableKinds = []string{kumav1alpha1.MeshServiceKind, kumav1alpha1.MeshMultiZoneServiceKind}

// ReachableBackends parses the annotation with backends: YAML with refs, a list, or a single backend.
func ReachableBackends(text string) ([]kumav1alpha1.ReachableBackendRef, error) {
	refs, err := readBackends(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", kumav1alpha1.AnnotationReachableBackends, err)
	}
	return refs, nil
}

// maxBackendsText bounds the annotation with backends, in bytes.
const maxBackendsText = 16 << 10

func readBackends(text string) ([]kumav1alpha1.ReachableBackendRef, error) {
	if len(text) > maxBackendsText {
		return nil, fmt.Errorf("%d bytes are more than %d: list fewer backends, or select them by labels", len(text), maxBackendsText)
	}
	// Expanded, a few lines of aliases fill the memory of the operator: they are looked for in what is not expanded.
	var document yamlv3.Node
	if err := yamlv3.Unmarshal([]byte(text), &document); err != nil {
		return nil, fmt.Errorf("not YAML (%w): write refs with a list of backends", err)
	}
	if line := aliasLine(&document); line > 0 {
		return nil, fmt.Errorf("line %d has an anchor or alias: write the value out", line)
	}
	body, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("not YAML (%w): write refs with a list of backends", err)
	}
	var refs []kumav1alpha1.ReachableBackendRef
	switch {
	case bytes.HasPrefix(body, []byte("[")):
		err = decodeStrictly(body, &refs)
	case bytes.HasPrefix(body, []byte("{")):
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			return nil, err
		}
		if _, one := fields["kind"]; one {
			refs = make([]kumav1alpha1.ReachableBackendRef, 1)
			err = decodeStrictly(body, &refs[0])
			break
		}
		var backends kumav1alpha1.ReachableBackends
		err = decodeStrictly(body, &backends)
		refs = backends.Refs
	default:
		return nil, fmt.Errorf("%q is not a list: write refs with a list of backends, or refs: [] for none", text)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: a backend has kind, name or labels, and optionally namespace and port", err)
	}
	for i := range refs {
		if err := checkBackend(&refs[i]); err != nil {
			return nil, fmt.Errorf("refs[%d].%w", i, err)
		}
	}
	return refs, nil
}

// aliasLine returns the line of the first anchor or alias, or 0.
func aliasLine(node *yamlv3.Node) int {
	if node.Anchor != "" || node.Kind == yamlv3.AliasNode {
		return node.Line
	}
	for _, child := range node.Content {
		if line := aliasLine(child); line > 0 {
			return line
		}
	}
	return 0
}

func decodeStrictly(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func checkBackend(ref *kumav1alpha1.ReachableBackendRef) error {
	switch {
	case ref.Kind != kumav1alpha1.MeshExternalServiceKind && !slices.Contains(reachableKinds, ref.Kind):
		return fmt.Errorf("kind %q cannot be reached: write %s", ref.Kind, strings.Join(reachableKinds, " or "))
	case ref.Name == "" && ref.Labels == nil:
		return fmt.Errorf("name is missing: write the name of a %s, or labels: {} for all of them", ref.Kind)
	case ref.Name != "" && ref.Labels != nil:
		return fmt.Errorf("labels and name %q are both set: set one of them", ref.Name)
	case ref.Name == "" && ref.Namespace != "":
		return fmt.Errorf("namespace %q and labels are both set: select the namespace by the label %s", ref.Namespace, kumav1alpha1.LabelNamespace)
	case ref.Port != nil && (*ref.Port < 1 || *ref.Port > 65535):
		return fmt.Errorf("port %d is out of range: write a number from 1 to 65535", *ref.Port)
	}
	return nil
}

// ReachOf returns the reach of a Dataplane. A name without a namespace is in its own.
func ReachOf(dataplane *kumav1alpha1.Dataplane, where ZoneInfo) model.Reach {
	var reach model.Reach
	t := dataplane.Spec.Networking.TransparentProxying
	if t == nil {
		return reach
	}
	reach.Services, reach.ServicesSet = t.ReachableServices, len(t.ReachableServices) > 0
	refs, set := t.BackendRefs()
	reach.RefsSet = set
	for _, ref := range refs {
		r := model.BackendRef{
			Kind: model.Kind(ref.Kind), Name: ref.Name, Namespace: ref.Namespace, Labels: ref.Labels, Port: uint32(ptr.Deref(ref.Port, 0)),
		}
		if r.Name != "" {
			r.Namespace = cmp.Or(r.Namespace, ProxyOf(dataplane, where).Namespace)
		}
		reach.Refs = append(reach.Refs, r)
	}
	return reach
}

// StrandedRemedy is what to do about a consumer that mode Exclusive would leave with nothing.
const StrandedRemedy = "list MeshServices in reachableBackendRefs of the Dataplane (annotation " + kumav1alpha1.AnnotationReachableBackends +
	" of the pod), or if it lists tags only, switch it with `fairlead migrate mesh` in mode " + string(kumav1alpha1.ModeReachableBackendRefs)
