package rollout

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// The parts of an environment, as LabelApp has them.
const (
	appEnvironmentd = "environmentd"
	appBalancerd    = "balancerd"
	appConsole      = "console"
)

const resourceIDLength = 10

// newResourceID is part of names that Kubernetes limits to lower-case letters and digits.
func newResourceID() string {
	return strings.ToLower(rand.Text()[:resourceIDLength])
}

// names are those of everything that belongs to one environment.
type names struct{ resourceID, namespace string }

func namesOf(m *v1alpha2.Materialize) names { return names{m.Status.ResourceID, m.Namespace} }

func (n names) of(part string) string { return "mz" + n.resourceID + "-" + part }

// environmentd is the name of the public Service, and of what all generations share.
func (n names) environmentd() string { return n.of(appEnvironmentd) }

func (n names) generation(g int64) string {
	return n.of(appEnvironmentd + "-" + strconv.FormatInt(g, 10))
}

func (n names) backup(g int64) string { return n.of("inherited-" + strconv.FormatInt(g, 10)) }

func (n names) pubsub(g int64) string { return n.of("persist-pubsub-" + strconv.FormatInt(g, 10)) }

func (n names) host(service string) string {
	return fmt.Sprintf("%s.%s.svc.cluster.local", service, n.namespace)
}

// serviceAccount of environmentd: the one that the spec names, or that Fairlead makes.
func (n names) serviceAccount(spec *v1alpha2.MaterializeSpec) string {
	if spec.ServiceAccountName != "" {
		return spec.ServiceAccountName
	}
	return n.environmentd()
}

func (n names) labels(app string) map[string]string {
	return map[string]string{v1alpha2.LabelResourceID: n.resourceID, v1alpha2.LabelApp: app}
}

func (n names) generationLabels(g int64) map[string]string {
	labels := n.labels(appEnvironmentd)
	labels[v1alpha2.LabelGeneration] = strconv.FormatInt(g, 10)
	return labels
}

// generationOf is the generation that an object was made for, and 0 for one that all share.
func generationOf(object metav1.Object) int64 {
	g, err := strconv.ParseInt(object.GetLabels()[v1alpha2.LabelGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return g
}

// environmentID is what the spec says, or what was derived from the UID when the environment was first seen.
func environmentID(m *v1alpha2.Materialize) v1alpha2.UUID {
	if id := m.Spec.EnvironmentID; id != "" && id != v1alpha2.NilUUID {
		return id
	}
	return m.Status.EnvironmentID
}
