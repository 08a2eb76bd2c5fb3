package model

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// Where things are when a cluster has joined.
const (
	// SecretNamespace of the hub has the Secrets that clusters are reached with.
	SecretNamespace = "karmada-cluster"
	// MemberNamespace of a cluster has the ServiceAccount of the hub.
	MemberNamespace = "fairlead-member"
	// MemberRole is what the hub may do in a cluster: all that ClusterRoles with LabelMemberRole say.
	MemberRole = "fairlead-member"
	// LabelMemberRole set to "true" on a ClusterRole of a cluster lets the hub do what that says.
	LabelMemberRole = "fairlead.dev/aggregate-to-member"
	// LabelMemberBinding marks the ClusterRoleBindings of hubs in a cluster.
	LabelMemberBinding = "fairlead.dev/member"
)

// ExecutionPrefix is that of the namespaces of the hub that stand for clusters.
const ExecutionPrefix = "karmada-es-"

func ExecutionNamespace(cluster string) string { return ExecutionPrefix + cluster }

// ClusterOf is the cluster that a namespace of the hub stands for, if it does.
func ClusterOf(namespace string) (string, bool) { return strings.CutPrefix(namespace, ExecutionPrefix) }

// The names of bindings and Works start with that of the resource, so that people find them.
const maxNameLength = 253

// BindingName is that of the binding of a resource, in the resource's own namespace.
func BindingName(kind schema.GroupVersionKind, name string) string {
	full := name + "-" + strings.ToLower(kind.Kind)
	if strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io") {
		// Kubernetes itself may have a kind of that name.
		full += "-" + Digest(kind.Group)
	}
	return sanitizeName(full, kind.Group, kind.Kind, name)
}

// WorkName is that of the Works of a resource, in the namespace of each cluster.
func WorkName(t Template) string {
	return sanitizeName(t.Name+"-"+Digest(t.GroupVersionKind().Group, t.Kind, t.Namespace, t.Name), t.Name)
}

// sanitizeName is a name that every object may have: those of roles may have capitals and colons.
func sanitizeName(name string, parts ...string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	if clean != name {
		clean = strings.Trim(clean, "-.") + "-" + Digest(parts...)
	}
	return ShortenName(clean, parts...)
}

func ShortenName(name string, parts ...string) string {
	if len(name) <= maxNameLength {
		return name
	}
	end := "-" + Digest(parts...)
	return name[:maxNameLength-len(end)] + end
}

func Digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}

func OriginalName(work *workv1alpha1.Work) string { return ShortenName("before-"+work.Name, work.Name) }
