package workload_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// example reads one of the manifests that users already have.
func example(t testing.TB, name string) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "test", "compatibility", "testdata", "accepted", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// as takes over how workloads move from a manifest, which may ask for a version that there are no charts of.
func as(t testing.TB, name string) func(*v1.Istio) {
	t.Helper()
	var from v1.Istio
	if err := yaml.UnmarshalStrict([]byte(example(t, name)), &from); err != nil {
		t.Fatal(err)
	}
	return func(istio *v1.Istio) {
		istio.Spec.UpdateStrategy.WorkloadMigration = from.Spec.UpdateStrategy.WorkloadMigration
	}
}

func maxVersion(version string) func(*v1.Istio) {
	return func(istio *v1.Istio) { istio.Spec.UpdateStrategy.WorkloadMigration.Batched.MaxVersion = &version }
}

// The fragments of the common usage patterns are how workloads move here, one after the other. How versions compare is a
// table of internal/revision/workload.
func TestVersionBoundaries(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t, as(t, "istio-fragment-patch-only"))
	b := makeDeployment(m.namespace(t, v1.LabelRevision, m.from), "cart")
	m.deploy(t, m.from, b)
	// refused checks that a version is asked for in vain.
	refused := func(t *testing.T, asked, bound string) {
		t.Helper()
		m.set(t, version(asked))
		m.serves(t)
		want := asked + " is above batched.maxVersion " + bound + "; raise it, and workloads move to " + m.revision(asked)
		if got := m.held(t, v1.ReasonMaxVersionExceeded); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		m.reported(t, m.istio, "MaxVersionExceeded", want)
		m.untouched(t, b)
	}
	t.Run("Migration skipped when version > maxVersion", func(t *testing.T) {
		refused(t, newVersion, "1.24.999")
		if status := m.istio.Status.WorkloadMigration; status == nil || status.State != v1.WorkloadMigrationStateIdle {
			t.Errorf("the status is %+v", status)
		}
		if got := m.labels(t, b.d.Namespace); got[v1.LabelRevision] != m.from {
			t.Errorf("the namespace has %v", got)
		}
	})
	t.Run("Migration triggered when version ≤ maxVersion", func(t *testing.T) {
		m.set(t, as(t, "istio-fragment-controlled-minor"))
		m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
		m.runs(t, b, m.to)
		refused(t, "v1.31.0", "1.26.0")
		m.restartedOnce(t, b)
	})
	t.Run("Migration always triggered when maxVersion unset", func(t *testing.T) {
		m.set(t, as(t, "istio-fragment-unrestricted"))
		for _, next := range []string{"v1.31.0", "v1.31.1"} {
			m.set(t, version(next))
			m.ends(t, m.revision(next), v1.WorkloadMigrationStateCompleted)
			m.runs(t, b, m.revision(next))
		}
		if got := m.rollouts(t, b); got != "4" {
			t.Errorf("it is at rollout %s, want one for each version", got)
		}
	})
	t.Run("Handle version comparison edge cases", func(t *testing.T) {
		m.set(t, inBatches(1, 0), maxVersion(oldVersion), version(oldVersion))
		m.ends(t, m.from, v1.WorkloadMigrationStateCompleted)
		m.runs(t, b, m.from)
	})
}
