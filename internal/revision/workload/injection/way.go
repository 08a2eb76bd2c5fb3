// Package injection checks with dry runs that pods get the sidecar of a revision, before workloads depend on it.
//
// A check creates a pod as a dry run: nothing is stored, and webhooks are called as for any other pod. It is refused where
// pods of workloads would be refused, and comes back with the sidecar that they would get.
package injection

import (
	"slices"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// Way is how pods select their injector: the name of a revision or tag in the label istio.io/rev, or Default.
type Way string

// Default selects the revision or tag that is called default, without naming it.
const Default Way = ""

func (w Way) labels() map[string]string {
	if w == Default {
		return map[string]string{v1.LabelSidecarInject: "true"}
	}
	return map[string]string{v1.LabelRevision: string(w)}
}

func (w Way) String() string {
	if w == Default {
		return "label " + v1.LabelSidecarInject + "=true"
	}
	return "label " + v1.LabelRevision + "=" + string(w)
}

// systemNamespaces are those that istiod injects nothing into.
var systemNamespaces = []string{"kube-system", "kube-public", "kube-node-lease", "local-path-storage"}

// LeavesChoice tells whether pods in a namespace with these labels select their injector by labels of their own: the webhooks
// of Istio's charts ignore those in a namespace that has a label for this itself.
func LeavesChoice(namespace string, labels map[string]string) bool {
	_, injection := labels[v1.LabelInjection]
	_, revision := labels[v1.LabelRevision]
	return !injection && !revision && !slices.Contains(systemNamespaces, namespace)
}
