package workload_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// The next control plane is ready, and nothing answers its webhook, which refuses pods then.
func TestInjectorFails(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newRealMesh(t, inBatches(2, 0))
	live := harness.Create(t, m.world, makeTag(m.istio.Name+"-live", v1.IstioKind, m.istio.Name))
	m.points(t, live, m.from)
	shop, bank, free := m.namespace(t, v1.LabelRevision, m.from), m.namespace(t, v1.LabelRevision, live.Name), m.namespace(t)
	all := []builder{
		makeDeployment(shop, "cart"), makeDeployment(bank, "vault"),
		makeDeployment(free, "own").podLabel(v1.LabelRevision, m.from),
	}
	m.deploy(t, m.from, all...)

	m.set(t, version(newVersion))
	m.Release(t, system, cluster.ReadyAfter, map[string]string{"app": "istiod", v1.LabelRevision: m.to})
	m.points(t, live, m.to)
	// Pods get no sidecar at all until the API server knows of the webhook.
	refused := []string{
		"IstioRevision " + m.to + " does not inject pods with label istio.io/rev=", "in namespace " + system + " was refused: ",
		`failed calling webhook "rev.object.sidecar-injector.istio.io"`,
	}
	m.held(t, v1.ReasonInjectionFailed, refused...)
	t.Run("commands", func(t *testing.T) {
		for _, command := range []string{"plan", "status"} {
			result := harness.RunCommand(t, m.Cluster, command, "istio", m.istio.Name, "-o", "json")
			if result.Code != 3 || !strings.Contains(result.Stdout, `"code": "InjectionFailed"`) || !strings.Contains(result.Stdout, "failed calling webhook") {
				t.Errorf("%s ended with %d:\n%s%s", command, result.Code, result.Stdout, result.Stderr)
			}
		}
	})
	t.Run("nothing has moved", func(t *testing.T) {
		// Another change of the Istio has to be looked at before this can be told.
		m.set(t, inBatches(3, 0))
		m.held(t, v1.ReasonInjectionFailed)
		m.untouched(t, all...)
		if diff := cmp.Diff(map[string]string{v1.LabelRevision: m.from}, m.labels(t, shop)); diff != "" {
			t.Errorf("namespace %s: (-want +got)\n%s", shop, diff)
		}
	})
	t.Run("goes on by itself", func(t *testing.T) {
		m.istiod(t, m.to)
		m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
		for _, b := range all {
			m.runs(t, b, m.to)
		}
		m.restartedOnce(t, all...)
	})
}
