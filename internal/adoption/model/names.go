package model

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

// Namespaces, roles and labels of joined clusters.
const (
	// SecretNamespace of the hub has the Secrets with the tokens of clusters.
	SecretNamespace = "karmada-cluster"
	// MemberNamespace of a cluster has the ServiceAccount of the hub.
	MemberNamespace = "fairlead-member"
	// MemberRole is the ClusterRole of the hub in a cluster. It aggregates the ClusterRoles with LabelMemberRole.
	MemberRole = "fairlead-member"
	// LabelMemberRole set to "true" on a ClusterRole of a cluster grants its rules to the hub.
	LabelMemberRole = "fairlead.dev/aggregate-to-member"
	// LabelMemberBinding marks the ClusterRoleBindings of hubs in a cluster.
	LabelMemberBinding = "fairlead.dev/member"
)

// ExecutionPrefix is the prefix of the namespaces of the hub with the Works of a cluster.
const ExecutionPrefix = "karmada-es-"

func ExecutionNamespace(cluster string) string { return ExecutionPrefix + cluster }

// ClusterOf is the cluster whose Works a namespace has, if it has Works.
func ClusterOf(namespace string) (string, bool) { return strings.CutPrefix(namespace, ExecutionPrefix) }

// maxNameLength is that of the API server.
const maxNameLength = 253

// BindingName is the name of the binding of a template, in the namespace of the template. It starts with that of the template.
func BindingName(kind schema.GroupVersionKind, name string) string {
	full := name + "-" + strings.ToLower(kind.Kind)
	if strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io") {
		// Kubernetes itself may have a kind of that name.
		full += "-" + Digest(kind.Group)
	}
	return sanitizeName(full, kind.Group, kind.Kind, name)
}

// BindingNames are the names that the binding of a template may have: that of BindingName; that by which Karmada has made it; and the
// one that it gets if a binding of another template has its name, as Karmada names those of different groups alike.
func BindingNames(kind schema.GroupVersionKind, name string) []string {
	own := BindingName(kind, name)
	all := []string{own, ShortenName(own+"-"+Digest(kind.Group, kind.Kind, name), kind.Group, kind.Kind, name)}
	if karmada := strings.ToLower(strings.ReplaceAll(name, ":", ".") + "-" + kind.Kind); karmada != own {
		all = append(all, karmada)
	}
	return all
}

// WorkName is the name of the Works of a template, in the namespace of each cluster.
func WorkName(t Template) string {
	return sanitizeName(t.Name+"-"+Digest(t.Key().Kind.Group, t.Kind, t.Namespace, t.Name), t.Name)
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
	valid := ShortenName(clean, parts...)
	if len(validation.IsDNS1123Subdomain(valid)) > 0 {
		// Between dots, a name has to begin and end with a letter or a digit; that of a role may do otherwise.
		valid = ShortenName(strings.Trim(strings.ReplaceAll(clean, ".", "-"), "-")+"-"+Digest(parts...), parts...)
	}
	return valid
}

func ShortenName(name string, parts ...string) string {
	if len(name) <= maxNameLength {
		return name
	}
	end := "-" + Digest(parts...)
	return strings.TrimRight(name[:maxNameLength-len(end)], ".") + end
}

func Digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}

func OriginalName(work *workv1alpha1.Work) string { return ShortenName("before-"+work.Name, work.Name) }
