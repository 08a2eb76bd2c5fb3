package migration_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/cluster"
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

// The fragments of the common usage patterns are how workloads move here.
func TestVersionBoundaries(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	// one is a workload that would move.
	one := func(t *testing.T, how ...func(*v1.Istio)) (*mesh, builder) {
		m := w.newMesh(t, how...)
		b := makeDeployment(m.namespace(t, v1.LabelRevision, m.from), "cart")
		m.deploy(t, m.from, b)
		return m, b
	}
	t.Run("Migration triggered when version ≤ maxVersion", func(t *testing.T) {
		t.Parallel()
		m, b := one(t, as(t, "istio-fragment-controlled-minor"))
		m.set(t, version("v1.26.0"))
		m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
		m.runs(t, b, m.to)

		t.Log("and not beyond it")
		m.set(t, version("v1.31.0"))
		want := "v1.31.0 is above batched.maxVersion 1.26.0; raise it, and workloads move to " + m.revision("v1.31.0")
		if got := m.held(t, v1.ReasonMaxVersionExceeded); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		m.restartedOnce(t, b)
	})
	t.Run("Migration skipped when version > maxVersion", func(t *testing.T) {
		t.Parallel()
		m, b := one(t, as(t, "istio-fragment-patch-only"))
		m.set(t, version("v1.26.0"))
		m.serves(t)
		want := "v1.26.0 is above batched.maxVersion 1.24.999; raise it, and workloads move to " + m.to
		if got := m.held(t, v1.ReasonMaxVersionExceeded); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		if status := m.istio.Status.WorkloadMigration; status == nil || status.State != v1.WorkloadMigrationStateIdle {
			t.Errorf("the status is %+v", status)
		}
		m.untouched(t, b)
		if got := m.labels(t, b.d.Namespace); got[v1.LabelRevision] != m.from {
			t.Errorf("the namespace has %v", got)
		}
		m.told(t, m.istio, "MaxVersionExceeded", want)

		t.Log("the bound is raised")
		m.set(t, maxVersion("1.26.999"))
		m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
		m.runs(t, b, m.to)
	})
	t.Run("Migration always triggered when maxVersion unset", func(t *testing.T) {
		t.Parallel()
		m, b := one(t, as(t, "istio-fragment-unrestricted"))
		for _, next := range []string{"v1.26.0", "v1.31.0", "v1.31.1"} {
			m.set(t, version(next))
			m.ends(t, m.revision(next), v1.WorkloadMigrationStateCompleted)
			m.runs(t, b, m.revision(next))
		}
		if got := m.rollouts(t, b); got != "4" {
			t.Errorf("it is at rollout %s, want one for each version", got)
		}
	})
	t.Run("Handle version comparison edge cases", func(t *testing.T) {
		t.Parallel()
		m, b := one(t, inBatches(1, 0, time.Minute), maxVersion("1.31.0"))
		m.set(t, version("v1.31.1"))
		for _, bound := range []string{
			"1.31.0",      // the bound itself is the last that is allowed
			"1.31.1-rc.1", // before the release, not after it
			"1.4.0",       // numbers, not text
			"v1.30.999",   // with a v
			"0.999.999",
		} {
			m.set(t, maxVersion(bound))
			m.held(t, v1.ReasonMaxVersionExceeded)
		}
		m.untouched(t, b)
		m.set(t, maxVersion("v1.31.1"))
		m.ends(t, m.revision("v1.31.1"), v1.WorkloadMigrationStateCompleted)

		t.Log("back, which is below the bound")
		m.set(t, version(oldVersion), func(istio *v1.Istio) {
			istio.Spec.UpdateStrategy.WorkloadMigration.Batched.BatchSize = ptr.To[int32](5)
		})
		m.ends(t, m.from, v1.WorkloadMigrationStateCompleted)
		m.runs(t, b, m.from)
	})
}
