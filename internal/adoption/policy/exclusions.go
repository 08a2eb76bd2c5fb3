package policy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// systemNamespaces are the namespaces of Kubernetes itself.
var systemNamespaces = []string{metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"}

// hubGroups are the API groups of policies, bindings, Works and Clusters, which decide what goes where.
var hubGroups = []string{policyv1alpha1.GroupVersion.Group, workv1alpha1.GroupVersion.Group, clusterv1alpha1.GroupVersion.Group}

// IsExcluded holds for resources of the hub that are never propagated: those that are local to each cluster, and those that make a
// cluster a hub.
func IsExcluded(t model.Template) bool {
	return IsClusterLocal(t) || slices.Contains(hubGroups, t.Key().Kind.Group)
}

// IsClusterLocal holds for resources that every cluster creates itself, such as the certificate authority of its API server.
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
