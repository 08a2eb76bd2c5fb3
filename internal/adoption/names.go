package adoption

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// executionPrefix is that of the namespaces of the hub that stand for clusters.
const executionPrefix = "karmada-es-"

func executionNamespace(cluster string) string { return executionPrefix + cluster }

// clusterOf is the cluster that a namespace of the hub stands for, if it does.
func clusterOf(namespace string) (string, bool) { return strings.CutPrefix(namespace, executionPrefix) }

// The names of bindings and Works start with that of the resource, so that people find them.
const longestName = 253

// bindingName is that of the binding of a resource, in the resource's own namespace.
func bindingName(kind, name string) string {
	return shortened(name+"-"+strings.ToLower(kind), kind, name)
}

// workName is that of the Works of a resource, in the namespace of each cluster.
func workName(t Template) string {
	return shortened(t.Name+"-"+digest(t.APIVersion, t.Kind, t.Namespace, t.Name), t.APIVersion, t.Kind, t.Namespace, t.Name)
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
