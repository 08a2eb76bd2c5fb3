// Package objects builds the objects of an environment, per generation and shared by all, and compares them with those in
// the cluster. It is pure.
package objects

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// The values of LabelApp.
const (
	AppEnvironmentd = "environmentd"
	AppBalancerd    = "balancerd"
	AppConsole      = "console"
)

const resourceIDLength = 10

// NewResourceID is part of names that Kubernetes limits to lower-case letters and digits.
func NewResourceID() string {
	return strings.ToLower(rand.Text()[:resourceIDLength])
}

// Names are those of the objects of one environment.
type Names struct{ resourceID, namespace string }

func NamesOf(m *v1alpha2.Materialize) Names { return Names{m.Status.ResourceID, m.Namespace} }

func (n Names) Of(part string) string { return "mz" + n.resourceID + "-" + part }

// Environmentd is the name of the public Service and of the RBAC objects.
func (n Names) Environmentd() string { return n.Of(AppEnvironmentd) }

func (n Names) Generation(g int64) string {
	return n.Of(AppEnvironmentd + "-" + strconv.FormatInt(g, 10))
}

func (n Names) Backup(g int64) string { return n.Of("inherited-" + strconv.FormatInt(g, 10)) }

func (n Names) PubSub(g int64) string { return n.Of("persist-pubsub-" + strconv.FormatInt(g, 10)) }

func (n Names) host(service string) string {
	return fmt.Sprintf("%s.%s.svc.cluster.local", service, n.namespace)
}

// serviceAccount of environmentd: the one in the spec, or the one that Fairlead creates.
func (n Names) serviceAccount(spec *v1alpha2.MaterializeSpec) string {
	if spec.ServiceAccountName != "" {
		return spec.ServiceAccountName
	}
	return n.Environmentd()
}

func (n Names) Labels(app string) map[string]string {
	return map[string]string{v1alpha2.LabelResourceID: n.resourceID, v1alpha2.LabelApp: app}
}

func (n Names) GenerationLabels(g int64) map[string]string {
	labels := n.Labels(AppEnvironmentd)
	labels[v1alpha2.LabelGeneration] = strconv.FormatInt(g, 10)
	return labels
}

// GenerationOf is the generation of an object, 0 for one that all generations share.
func GenerationOf(object metav1.Object) int64 {
	g, err := strconv.ParseInt(object.GetLabels()[v1alpha2.LabelGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return g
}

// EnvironmentID is the one in the spec, or the one in the status, which comes from the UID.
func EnvironmentID(m *v1alpha2.Materialize) v1alpha2.UUID {
	if id := m.Spec.EnvironmentID; id != "" && id != v1alpha2.NilUUID {
		return id
	}
	return m.Status.EnvironmentID
}
