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
	if slices.Contains(systemNamespaces, t.Namespace) {
		return true
	}
	switch t.APIVersion + " " + t.Kind {
	case "v1 Namespace":
		return slices.Contains(systemNamespaces, t.Name) || t.Name == SecretNamespace || t.Name == MemberNamespace || isExecution(t.Name)
	case "v1 ConfigMap":
		return t.Name == "kube-root-ca.crt"
	case "v1 ServiceAccount":
		return t.Name == "default"
	case "v1 Service":
		return t.Namespace == metav1.NamespaceDefault && t.Name == "kubernetes"
	}
	return false
}

func isExecution(namespace string) bool {
	_, is := clusterOf(namespace)
	return is
}
