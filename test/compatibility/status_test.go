package compatibility

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// Through the Go types, so that what Fairlead will write is what the design shows, down to the zeros.
func TestStoryMigrationStatusExamples(t *testing.T) {
	c := server(t)
	eachFile(t, "status", func(t *testing.T, file string) {
		want := read(t, file).Object["status"].(map[string]any)["workloadMigration"]
		migration := &v1.WorkloadMigrationStatus{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want.(map[string]any), migration); err != nil {
			t.Fatal(err)
		}
		applied := apply(t, c, parse(t, istio(`{version: v1.26.0}`)))
		typed := &v1.Istio{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(applied), typed); err != nil {
			t.Fatal(err)
		}
		typed.Status.WorkloadMigration = migration
		if err := c.Status().Update(t.Context(), typed); err != nil {
			t.Fatal(err)
		}
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(applied.GroupVersionKind())
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(applied), stored); err != nil {
			t.Fatal(err)
		}
		got, _, _ := unstructured.NestedFieldNoCopy(stored.Object, "status", "workloadMigration")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stored status (-want +got):\n%s", diff)
		}
	})
}

func TestStoryTagStatusExample(t *testing.T) {
	c := server(t)
	example := read(t, "testdata/accepted/tag-v1alpha1-to-istio.yaml")
	applied := apply(t, c, example)
	applied.Object["status"] = example.Object["status"]
	if err := c.Status().Update(t.Context(), applied); err != nil {
		t.Fatal(err)
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(applied.GroupVersionKind())
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(applied), stored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example.Object["status"], stored.Object["status"]); diff != "" {
		t.Errorf("stored status (-want +got):\n%s", diff)
	}
}

func TestStoryInvalidStatusIsRefused(t *testing.T) {
	failures := func(count int) (failures []v1.WorkloadMigrationFailure) {
		for i := range count {
			failures = append(failures, v1.WorkloadMigrationFailure{
				Namespace: "shop", Name: fmt.Sprintf("cart-%d", i), Kind: "Deployment", Reason: "never ready",
				Timestamp: metav1.Date(2025, 10, 21, 10, 30, i, 0, time.UTC),
			})
		}
		return failures
	}
	cases := map[string]struct {
		status         v1.WorkloadMigrationStatus
		field, because string
	}{
		"unknown state": {
			v1.WorkloadMigrationStatus{State: "Paused"},
			"status.workloadMigration.state", "Unsupported value",
		},
		"more failures than are kept": {
			v1.WorkloadMigrationStatus{State: v1.WorkloadMigrationStateFailed, Failures: failures(v1.MaxReportedFailures + 1)},
			"status.workloadMigration.failures", "at most 10 items",
		},
	}
	c := server(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			applied := apply(t, c, parse(t, istio(`{}`)))
			typed := &v1.Istio{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(applied), typed); err != nil {
				t.Fatal(err)
			}
			typed.Status.WorkloadMigration = &tc.status
			expectRefusal(t, c.Status().Update(t.Context(), typed), tc.field, tc.because)
		})
	}
}
