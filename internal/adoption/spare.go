package adoption

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// systemNamespaces are those that a cluster runs itself in.
var systemNamespaces = []string{metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"}

// everyClusterHas holds for what every cluster makes for itself: the hub's would do harm elsewhere, such as the authority by
// which pods know their API server.
func everyClusterHas(t Template) bool {
	if slices.Contains(systemNamespaces, t.Namespace) || isOurs(t.Namespace) {
		return true
	}
	switch t.APIVersion + " " + t.Kind {
	case "v1 Namespace":
		return slices.Contains(systemNamespaces, t.Name) || isOurs(t.Name)
	case "v1 ConfigMap":
		return t.Name == "kube-root-ca.crt"
	case "v1 ServiceAccount":
		return t.Name == "default"
	case "v1 Service":
		return t.Namespace == metav1.NamespaceDefault && t.Name == "kubernetes"
	}
	return false
}

// isOurs holds for the namespaces that Fairlead keeps its books and its tokens in, here and in clusters.
func isOurs(namespace string) bool {
	_, execution := clusterOf(namespace)
	return execution || namespace == SecretNamespace || namespace == MemberNamespace
}
