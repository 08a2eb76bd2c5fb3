package workload_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
)

// The examples of the design, as they are written there, do what they say. All of them are about the Istio called
// default, and ask for v1.26.0.
func TestStoryExamples(t *testing.T) {
	t.Parallel()
	w := ofDefault(t)
	m := w.makeMesh(t, v1.DefaultRevision)
	for _, version := range []string{oldVersion, newVersion} {
		w.applyExample(t, "istio-basic-automatic-migration", version)
		// Nothing uses them between the examples, and they have to stay.
		harness.Create(t, w, makeTag("keeps-"+m.revision(version), v1.IstioRevisionKind, m.revision(version)))
		m.istiod(t, m.revision(version))
	}
	for name, example := range map[string]struct {
		file  string
		batch int
		delay v1.Duration
		bound string
	}{
		"Basic Automatic Migration (Default - No Limits)": {
			file: "istio-basic-automatic-migration", batch: 1,
		},
		"Patch-only Updates (Production with Strict Change Control)": {
			file: "istio-patch-only-updates", batch: 3, delay: "2m", bound: "1.26.999",
		},
		"Controlled Minor Version Upgrades (Staged Rollout)": {
			file: "istio-controlled-minor-upgrades", batch: 5, delay: "60s", bound: "1.26.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.applyExample(t, example.file, oldVersion)
			m.serves(t)
			var all []builder
			namespace := m.namespace(t, v1.LabelRevision, m.from)
			for i := range example.batch + 1 {
				all = append(all, makeDeployment(namespace, fmt.Sprintf("w%d", i)).heldOn(m.to))
			}
			m.deploy(t, m.from, all...)
			seen := m.watch(t)
			first, last := all[:example.batch], all[example.batch]

			w.applyExample(t, example.file, newVersion)
			for _, b := range first {
				m.moves(t, b, m.to)
			}
			if status := m.inBatch(t, 1); status.Batched.TotalBatches != 2 {
				t.Errorf("it says %+v, want a batch of %d and one more", status.Batched, example.batch)
			}
			m.untouched(t, last)
			if settings := m.istio.Spec.UpdateStrategy.WorkloadMigration.Batched; settings != nil && *settings.DelayBetweenBatches != example.delay {
				t.Errorf("the next batch starts after %s, want %s", *settings.DelayBetweenBatches, example.delay)
			}
			if example.bound != "" {
				w.applyExample(t, example.file, "v1.31.0")
				want := fmt.Sprintf("v1.31.0 is above batched.maxVersion %s; raise it, and workloads move to default-v1-31-0", example.bound)
				if got := m.held(t, v1.ReasonMaxVersionExceeded); got != want {
					t.Errorf("it says %q, want %q", got, want)
				}
				m.untouched(t, last)
			}
			m.release(t, first...)
			for _, b := range first {
				m.runs(t, b, m.to)
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
				harness.WaitForDeletion(t, w, b.d)
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
