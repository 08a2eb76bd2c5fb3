package migration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/chart"
)

// The examples of the design, as they are written there, do what they say. All of them are about the Istio called
// default, and ask for v1.26.0.
func TestExamples(t *testing.T) {
	t.Parallel()
	w := ofDefault(t)
	m := w.makeMesh(t, v1.DefaultRevision)
	for _, version := range []string{oldVersion, newVersion} {
		w.applyExample(t, "istio-basic-automatic-migration", version)
		// Nothing uses them between the examples, and they have to stay.
		create(t, w, makeTag("keeps-"+m.revision(version), v1.IstioRevisionKind, m.revision(version)))
		m.istiod(t, m.revision(version))
	}
	for name, example := range map[string]struct {
		file  string
		batch int
		delay time.Duration
		bound string
	}{
		"Basic Automatic Migration (Default - No Limits)": {
			file: "istio-basic-automatic-migration", batch: 1, delay: 30 * time.Second,
		},
		"Patch-only Updates (Production with Strict Change Control)": {
			file: "istio-patch-only-updates", batch: 3, bound: "1.26.999",
		},
		"Controlled Minor Version Upgrades (Staged Rollout)": {
			file: "istio-controlled-minor-upgrades", batch: 5, bound: "1.26.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.applyExample(t, example.file, oldVersion)
			m.serves(t)
			var all []builder
			namespace := m.namespace(t, v1.LabelRevision, m.from)
			for i := range example.batch + 1 {
				all = append(all, makeDeployment(namespace, fmt.Sprintf("w%d", i)))
			}
			m.deploy(t, m.from, all...)
			seen := m.watch(t)
			last := all[example.batch]

			w.applyExample(t, example.file, newVersion)
			status := m.underway(t, int32(example.batch))
			if status.Batched.CurrentBatch != 1 || status.Batched.TotalBatches != 2 || int(status.MigratedWorkloads) != example.batch {
				t.Errorf("it says %+v in %+v, want a batch of %d and one more", status, status.Batched, example.batch)
			}
			m.untouched(t, last)
			if example.delay > 0 {
				m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
				m.runs(t, all[0], m.to)
				m.runs(t, last, m.to)
				if waited := markOf(t, last.d).Started.Sub(availableSince(all[0].d)); waited < example.delay {
					t.Errorf("the second was restarted %s after the first had settled, want %s", waited, example.delay)
				}
			}
			if example.bound != "" {
				w.applyExample(t, example.file, "v1.31.0")
				want := fmt.Sprintf("v1.31.0 is above batched.maxVersion %s; raise it, and workloads move to default-v1-31-0", example.bound)
				if got := m.held(t, v1.ReasonMaxVersionExceeded); got != want {
					t.Errorf("it says %q, want %q", got, want)
				}
				m.untouched(t, last)
			}
			seen.proves(t, example.batch)

			// Nothing is left that the next one would have to move.
			m.label(t, namespace, v1.LabelRevision, "")
			for _, b := range all {
				if err := m.Delete(t.Context(), b.d); err != nil {
					t.Fatal(err)
				}
			}
			for _, b := range all {
				gone(t, w, b.d)
			}
		})
	}
}

// applyExample applies a manifest as `kubectl apply --server-side` does, as it is written or with another version.
func (w *world) applyExample(t testing.TB, name, version string) {
	t.Helper()
	const written = "version: v1.26.0"
	text := example(t, name)
	if !strings.Contains(text, written) {
		t.Fatalf("%s is about another version", name)
	}
	objects, err := chart.Decode(strings.Replace(text, written, "version: "+version, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		err := w.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)
		if err != nil {
			t.Fatalf("apply %s: %v", name, err)
		}
	}
}
