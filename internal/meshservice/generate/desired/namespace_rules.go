package desired

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// NamespaceRules are the names that objects of a namespace may use beyond its own. The Namespace has them, which tenants do not
// write. The zero value is that of a Namespace without labels and annotations.
type NamespaceRules struct {
	// mesh is that of the namespace, empty for the default one.
	mesh                        string
	meshes, services, hostnames []string
}

// RulesOf returns the rules of a namespace.
func RulesOf(namespace metav1.Object) NamespaceRules {
	rules := NamespaceRules{
		mesh:      MeshNamed(namespace),
		meshes:    listed(namespace, kumav1alpha1.AnnotationAllowedMeshes),
		services:  listed(namespace, kumav1alpha1.AnnotationAllowedServices),
		hostnames: listed(namespace, kumav1alpha1.AnnotationAllowedHostnames),
	}
	if rules.mesh == kumav1alpha1.DefaultMesh {
		rules.mesh = ""
	}
	return rules
}

func listed(namespace metav1.Object, annotation string) []string {
	var all []string
	for item := range strings.SplitSeq(namespace.GetAnnotations()[annotation], ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}

// Equal says whether two rules are the same.
func (r NamespaceRules) Equal(other NamespaceRules) bool {
	return r.mesh == other.mesh && slices.Equal(r.meshes, other.meshes) && slices.Equal(r.services, other.services) &&
		slices.Equal(r.hostnames, other.hostnames)
}

// AllowsMesh says whether objects of the namespace may name a mesh.
func (r NamespaceRules) AllowsMesh(mesh string) bool {
	return mesh == r.ownMesh() || slices.Contains(r.meshes, mesh) || slices.Contains(r.meshes, "*")
}

// AllowsService says whether Dataplanes of the namespace may have a value of kuma.io/service that is not its own.
func (r NamespaceRules) AllowsService(service string) bool {
	return slices.Contains(r.services, service)
}

func (r NamespaceRules) ownMesh() string { return cmp.Or(r.mesh, kumav1alpha1.DefaultMesh) }

// allowsHostname says whether services of the namespace may have a hostname: one with the namespace as a part, except among the
// hostnames of tags, or one that is listed.
func (r NamespaceRules) allowsHostname(hostname, namespace string) bool {
	if slices.ContainsFunc(r.hostnames, func(allowed string) bool {
		suffix, wildcard := strings.CutPrefix(allowed, "*")
		return hostname == allowed || wildcard && strings.HasPrefix(suffix, ".") && strings.HasSuffix(hostname, suffix)
	}) {
		return true
	}
	return !strings.HasSuffix(hostname, tagDomain) && slices.Contains(strings.Split(hostname, "."), namespace)
}

// tagDomain is the suffix of the hostnames of values of kuma.io/service.
const tagDomain = ".mesh"

// RefusedMesh is the mesh that a pod or Service names and may not join, empty if it may.
func RefusedMesh(object, namespace metav1.Object, where ZoneInfo) string {
	mesh := MeshOfWorkload(object, namespace)
	if IsTrusted(object, where) || RulesOf(namespace).AllowsMesh(mesh) {
		return ""
	}
	return mesh
}

// RefusedMeshText says that an object may not name a mesh, and what to do.
func RefusedMeshText(kind, namespace, mesh string, rules NamespaceRules) string {
	return fmt.Sprintf("namespace %s may not use Mesh %s, so the %s is ignored: name Mesh %s, or add %s to the annotation %s of Namespace %s",
		namespace, shorten(mesh), kind, rules.ownMesh(), shorten(mesh), kumav1alpha1.AnnotationAllowedMeshes, namespace)
}

// RefusedTag returns the tag of an inbound that its Dataplane may not have, empty if there is none. Such an inbound is ignored: a
// tenant could receive the calls of another's service.
func RefusedTag(dataplane metav1.Object, tags map[string]string, rules NamespaceRules, where ZoneInfo) string {
	if IsTrusted(dataplane, where) {
		return ""
	}
	own := dataplane.GetNamespace()
	// The selectors of generated MeshServices name the namespace, so no rule allows another one.
	if namespace, written := tags[kumav1alpha1.LabelKubernetesNamespace]; written && namespace != own {
		return kumav1alpha1.LabelKubernetesNamespace
	}
	if service := tags[kumav1alpha1.TagService]; service != "" && model.NamespaceOfTag(service) != own && !rules.AllowsService(service) {
		return kumav1alpha1.TagService
	}
	return ""
}

// RefusedTagText says why the tag of an inbound is refused, and what to do.
func RefusedTagText(namespace, tag, value string, where ZoneInfo) string {
	value = shorten(value)
	if tag == kumav1alpha1.LabelKubernetesNamespace {
		return fmt.Sprintf("%s is not the namespace of the Dataplane, so the inbound is ignored: write %s, or move the Dataplane to namespace %s or %s",
			value, namespace, value, where.SystemNamespace)
	}
	return fmt.Sprintf("%s is not a service of namespace %s, so the inbound is ignored: write a value NAME_%s_svc_PORT, add %s to the annotation %s of Namespace %s, or move the Dataplane to namespace %s",
		value, namespace, namespace, value, kumav1alpha1.AnnotationAllowedServices, namespace, where.SystemNamespace)
}

// Refusal is why a part of a Dataplane is ignored.
type Refusal struct{ Field, Message string }

// MeshField is where an object names its mesh.
const MeshField = "metadata.labels[" + kumav1alpha1.LabelMesh + "]"

// InboundField is where an inbound has a tag.
func InboundField(inbound int, tag string) string {
	return fmt.Sprintf("spec.networking.inbound[%d].tags[%s]", inbound, tag)
}

// RefusalsOf returns why parts of a Dataplane are ignored.
func RefusalsOf(dataplane *kumav1alpha1.Dataplane, rules NamespaceRules, where ZoneInfo) []Refusal {
	if mesh := MeshOf(dataplane); !IsTrusted(dataplane, where) && !rules.AllowsMesh(mesh) {
		return []Refusal{{MeshField, RefusedMeshText(kumav1alpha1.DataplaneKind, dataplane.Namespace, mesh, rules)}}
	}
	var all []Refusal
	for i := range dataplane.Spec.Networking.Inbound {
		inbound := &dataplane.Spec.Networking.Inbound[i]
		if inbound.InForce() == kumav1alpha1.InboundIgnored {
			continue
		}
		if tag := RefusedTag(dataplane, inbound.Tags, rules, where); tag != "" {
			all = append(all, Refusal{InboundField(i, tag), RefusedTagText(dataplane.Namespace, tag, inbound.Tags[tag], where)})
		}
	}
	return all
}

// maxNameLength bounds what a message quotes of users.
const maxNameLength = 100

func shorten(name string) string {
	name = passage.Printable(name)
	if len(name) <= maxNameLength {
		return name
	}
	return strings.ToValidUTF8(name[:maxNameLength], "") + "..."
}
