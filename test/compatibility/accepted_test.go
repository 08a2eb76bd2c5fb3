package compatibility

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/api/sailoperator/v1alpha1"
)

func TestStoryExamplesAreAcceptedAndDefaulted(t *testing.T) {
	c := server(t)
	eachFile(t, "accepted", func(t *testing.T, file string) {
		example := read(t, file)
		applied := apply(t, c, example)
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(example.GroupVersionKind())
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(applied), stored); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(defaulted(t, file, example), stored.Object["spec"]); diff != "" {
			t.Errorf("stored spec (-want +got):\n%s", diff)
		}
		if status, found := stored.Object["status"]; found {
			t.Errorf("status was written without its subresource: %v", status)
		}
	})
}

// defaulted is the spec that should be stored: the one in testdata/defaulted, or the example's own where it leaves
// nothing to default.
func defaulted(t *testing.T, file string, example *unstructured.Unstructured) any {
	t.Helper()
	wanted := filepath.Join("testdata", "defaulted", filepath.Base(file))
	if _, err := os.Stat(wanted); errors.Is(err, fs.ErrNotExist) {
		return example.Object["spec"]
	}
	return read(t, wanted).Object["spec"]
}

func TestStoryExamplesResolveAsDocumented(t *testing.T) {
	c := server(t)
	settings := func(change func(*v1.MigrationSettings)) v1.MigrationSettings {
		settings := v1.MigrationSettings{
			Strategy:            v1.WorkloadMigrationStrategyBatched,
			WorkloadKinds:       []v1.WorkloadKind{v1.WorkloadKindDeployment},
			BatchSize:           1,
			DelayBetweenBatches: 30 * time.Second,
			ReadinessTimeout:    5 * time.Minute,
			MaxReadinessTimeout: 30 * time.Minute,
			FailurePolicy:       v1.FailurePolicyContinueOnError,
		}
		change(&settings)
		return settings
	}
	cases := map[string]v1.MigrationSettings{
		"basic-automatic-migration": settings(func(*v1.MigrationSettings) {}),
		"patch-only-updates": settings(func(s *v1.MigrationSettings) {
			s.MaxVersion, s.BatchSize = semver.MustParse("1.26.999"), 3
			s.DelayBetweenBatches, s.ReadinessTimeout = 2*time.Minute, 10*time.Minute
		}),
		"controlled-minor-upgrades": settings(func(s *v1.MigrationSettings) {
			s.MaxVersion, s.BatchSize = semver.MustParse("1.26.0"), 5
			s.DelayBetweenBatches, s.ReadinessTimeout = time.Minute, 10*time.Minute
		}),
		"fragment-unrestricted":     settings(func(*v1.MigrationSettings) {}),
		"fragment-patch-only":       settings(func(s *v1.MigrationSettings) { s.MaxVersion = semver.MustParse("1.24.999") }),
		"fragment-controlled-minor": settings(func(s *v1.MigrationSettings) { s.MaxVersion = semver.MustParse("1.26.0") }),
		"nothing-said":              settings(func(s *v1.MigrationSettings) { s.Strategy = "" }),
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			applied := apply(t, c, read(t, "testdata/accepted/istio-"+name+".yaml"))
			istio := &v1.Istio{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(applied), istio); err != nil {
				t.Fatal(err)
			}
			got, err := istio.Spec.UpdateStrategy.WorkloadMigration.Settings()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStoryTagIsTheSameInBothVersions(t *testing.T) {
	c := server(t)
	for _, file := range []string{"tag-v1-to-istio", "tag-v1alpha1-to-istiorevision"} {
		t.Run(file, func(t *testing.T) {
			example := read(t, "testdata/accepted/"+file+".yaml")
			applied := apply(t, c, example)
			applied.Object["status"] = example.Object["status"]
			if err := c.Status().Update(t.Context(), applied); err != nil {
				t.Fatal(err)
			}
			key := client.ObjectKeyFromObject(applied)
			stable, alpha := &v1.IstioRevisionTag{}, &v1alpha1.IstioRevisionTag{}
			if err := c.Get(t.Context(), key, stable); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), key, alpha); err != nil {
				t.Fatal(err)
			}
			if stable.Spec.TargetRef.Name == "" || stable.Status.State != v1.StateHealthy {
				t.Errorf("v1 reads spec %v, status %v", stable.Spec, stable.Status)
			}
			if diff := cmp.Diff(stable.Spec, alpha.Spec); diff != "" {
				t.Errorf("spec (-v1 +v1alpha1):\n%s", diff)
			}
			if diff := cmp.Diff(stable.Status, alpha.Status); diff != "" {
				t.Errorf("status (-v1 +v1alpha1):\n%s", diff)
			}
		})
	}
}

// Fairlead writes these objects through their Go types too: doing so must not change what the user said.
func TestStoryTypedUpdateLosesNothing(t *testing.T) {
	c := server(t)
	applied := apply(t, c, read(t, "testdata/accepted/istio-everything-said.yaml"))
	key := client.ObjectKeyFromObject(applied)
	istio := &v1.Istio{}
	if err := c.Get(t.Context(), key, istio); err != nil {
		t.Fatal(err)
	}
	istio.Annotations = map[string]string{"touched": "true"}
	if err := c.Update(t.Context(), istio); err != nil {
		t.Fatal(err)
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(applied.GroupVersionKind())
	if err := c.Get(t.Context(), key, stored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(applied.Object["spec"], stored.Object["spec"]); diff != "" {
		t.Errorf("spec after a typed update (-before +after):\n%s", diff)
	}
	if before, after := applied.GetGeneration(), stored.GetGeneration(); before != after {
		t.Errorf("generation went from %d to %d", before, after)
	}
}

func TestStoryLongestNamesAreAccepted(t *testing.T) {
	c := server(t)
	cases := map[string]string{
		"Istio":            manifest("v1", "Istio", strings.Repeat("i", 36), `{}`),
		"IstioRevision":    manifest("v1", "IstioRevision", strings.Repeat("r", 46), `{version: v1.24.0}`),
		"IstioRevisionTag": manifest("v1", "IstioRevisionTag", strings.Repeat("t", 40), `{targetRef: {kind: Istio, name: default}}`),
	}
	for kind, text := range cases {
		t.Run(kind, func(t *testing.T) { apply(t, c, parse(t, text)) })
	}
}
