package policy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/internal/adoption/model"
)

// systemNamespaces are the namespaces of Kubernetes itself.
var systemNamespaces = []string{metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"}

// IsClusterLocal holds for resources that every cluster creates itself, such as the certificate authority of its API server. Those
// of the hub are never propagated.
func IsClusterLocal(t model.Template) bool {
	if slices.Contains(systemNamespaces, t.Namespace) || isFairleadNamespace(t.Namespace) {
		return true
	}
	switch t.APIVersion + " " + t.Kind {
	case "v1 Namespace":
		return slices.Contains(systemNamespaces, t.Name) || isFairleadNamespace(t.Name)
	case "v1 ConfigMap":
		return t.Name == "kube-root-ca.crt"
	case "v1 ServiceAccount":
		return t.Name == "default"
	case "v1 Service":
		return t.Namespace == metav1.NamespaceDefault && t.Name == "kubernetes"
	}
	return false
}

// isFairleadNamespace holds for the namespaces with Works, tokens and accounts of Fairlead.
func isFairleadNamespace(namespace string) bool {
	_, execution := model.ClusterOf(namespace)
	return execution || namespace == model.SecretNamespace || namespace == model.MemberNamespace
}
