package adoption

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// executionPrefix is that of the namespaces of the hub that stand for clusters.
const executionPrefix = "karmada-es-"

func executionNamespace(cluster string) string { return executionPrefix + cluster }

// clusterOf is the cluster that a namespace of the hub stands for, if it does.
func clusterOf(namespace string) (string, bool) { return strings.CutPrefix(namespace, executionPrefix) }

// The names of bindings and Works start with that of the resource, so that people find them.
const longestName = 253

// bindingName is that of the binding of a resource, in the resource's own namespace.
func bindingName(kind schema.GroupVersionKind, name string) string {
	full := name + "-" + strings.ToLower(kind.Kind)
	if strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io") {
		// Kubernetes itself may have a kind of that name.
		full += "-" + digest(kind.Group)
	}
	return proper(full, kind.Group, kind.Kind, name)
}

// workName is that of the Works of a resource, in the namespace of each cluster.
func workName(t Template) string {
	return proper(t.Name+"-"+digest(t.gvk().Group, t.Kind, t.Namespace, t.Name), t.Name)
}

// proper is a name that every object may have: those of roles may have capitals and colons.
func proper(name string, parts ...string) string {
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
		clean = strings.Trim(clean, "-.") + "-" + digest(parts...)
	}
	return shortened(clean, parts...)
}

func shortened(name string, parts ...string) string {
	if len(name) <= longestName {
		return name
	}
	end := "-" + digest(parts...)
	return name[:longestName-len(end)] + end
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}
