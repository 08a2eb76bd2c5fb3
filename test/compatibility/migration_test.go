package compatibility

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// The lines of the first part of the design's unit tests, by their names: a schema is what an API server makes of it.
func TestStoryAPIValidationAndDefaults(t *testing.T) {
	const field = "spec.updateStrategy.workloadMigration"
	c := server(t)
	stored := func(t *testing.T, text string) *v1.WorkloadMigrationConfig {
		t.Helper()
		applied := apply(t, c, parse(t, text))
		istio := &v1.Istio{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(applied), istio); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), applied); err != nil {
			t.Fatal(err)
		}
		return istio.Spec.UpdateStrategy.WorkloadMigration
	}
	t.Run("Validate workloadMigration.strategy enum values", func(t *testing.T) {
		for _, strategy := range []v1.WorkloadMigrationStrategy{v1.WorkloadMigrationStrategyDisabled, v1.WorkloadMigrationStrategyBatched} {
			migration := stored(t, istio(`{updateStrategy: {workloadMigration: {strategy: "`+string(strategy)+`"}}}`))
			if migration == nil || migration.Strategy != strategy {
				t.Errorf("%q is stored as %+v", strategy, migration)
			}
		}
		for _, strategy := range []string{"batched", "Canary", "None"} {
			err := c.Create(t.Context(), parse(t, istio(`{updateStrategy: {workloadMigration: {strategy: `+strategy+`}}}`)), client.DryRunAll)
			expectRefusal(t, err, field+".strategy", `"Batched"`)
		}
	})
	t.Run("Default values applied correctly (batchSize=1, delayBetweenBatches=30s, readinessTimeout=5m)", func(t *testing.T) {
		want := &v1.WorkloadMigrationConfig{
			Strategy: v1.WorkloadMigrationStrategyBatched,
			Batched: &v1.BatchedMigrationConfig{
				BatchSize: ptr.To[int32](1), DelayBetweenBatches: ptr.To[v1.Duration]("30s"), ReadinessTimeout: ptr.To[v1.Duration]("5m"),
				FailurePolicy: v1.FailurePolicyContinueOnError, WorkloadKinds: []v1.WorkloadKind{v1.WorkloadKindDeployment},
			},
		}
		if diff := cmp.Diff(want, stored(t, batched(`{}`))); diff != "" {
			t.Errorf("with an empty batched (-want +stored):\n%s", diff)
		}
		// A schema cannot default what is in a field that is not there, so the controller does.
		settings := func(migration *v1.WorkloadMigrationConfig) v1.MigrationSettings {
			resolved, err := migration.Settings()
			if err != nil {
				t.Fatal(err)
			}
			return resolved
		}
		if diff := cmp.Diff(settings(want), settings(stored(t, istio(`{updateStrategy: {workloadMigration: {strategy: Batched}}}`)))); diff != "" {
			t.Errorf("without batched (-want +got):\n%s", diff)
		}
		if migration := stored(t, istio(`{updateStrategy: {workloadMigration: {}}}`)); migration == nil || migration.Strategy != v1.WorkloadMigrationStrategyDisabled {
			t.Errorf("without a strategy it is %+v", migration)
		}
	})
	t.Run("Invalid configurations rejected (e.g., batchSize < 1)", func(t *testing.T) {
		for settings, because := range map[string][2]string{
			`{batchSize: 0}`:              {".batched.batchSize", "greater than or equal to 1"},
			`{batchSize: -1}`:             {".batched.batchSize", "greater than or equal to 1"},
			`{batchSize: many}`:           {".batched.batchSize", "must be of type integer"},
			`{delayBetweenBatches: soon}`: {".batched.delayBetweenBatches", "must be a duration"},
			`{readinessTimeout: -5m}`:     {".batched.readinessTimeout", "not negative"},
			`{maxVersion: 1.26.x}`:        {".batched.maxVersion", "full version"},
			`{failurePolicy: Never}`:      {".batched.failurePolicy", `"FailFast"`},
			`{delayBetweenRestarts: 30s}`: {".batched.delayBetweenRestarts", "unknown field"},
		} {
			err := c.Create(t.Context(), parse(t, batched(settings)), client.DryRunAll)
			expectRefusal(t, err, field+because[0], because[1])
		}
	})
	t.Run("API serialization/deserialization of all new types", func(t *testing.T) {
		want := &v1.Istio{
			ObjectMeta: metav1.ObjectMeta{Name: "serialized"},
			Spec: v1.IstioSpec{UpdateStrategy: v1.IstioUpdateStrategy{
				Type: v1.UpdateStrategyRevisionBased,
				WorkloadMigration: &v1.WorkloadMigrationConfig{
					Strategy: v1.WorkloadMigrationStrategyBatched,
					Batched: &v1.BatchedMigrationConfig{
						WorkloadKinds: []v1.WorkloadKind{"DaemonSet", "Deployment"}, BatchSize: ptr.To[int32](7), DelayBetweenBatches: ptr.To[v1.Duration]("1m30s"),
						MaxVersion: ptr.To("1.26.999"), ReadinessTimeout: ptr.To[v1.Duration]("10m"), FailurePolicy: v1.FailurePolicyFailFast,
					},
				},
			}},
		}
		status := v1.IstioStatus{WorkloadMigration: &v1.WorkloadMigrationStatus{
			State: v1.WorkloadMigrationStateFailed, TargetRevision: "default-v1-26-0", TotalWorkloads: 3, MigratedWorkloads: 2, FailedWorkloads: 1,
			Failures: []v1.WorkloadMigrationFailure{{
				Namespace: "shop", Name: "cart", Kind: "Deployment", Reason: "Readiness timeout exceeded after 5m0s", Code: v1.ReasonTimeout,
				Timestamp: metav1.Unix(1761042912, 0),
			}},
			StartTime: ptr.To(metav1.Unix(1761042600, 0)), CompletionTime: ptr.To(metav1.Unix(1761043523, 0)),
			Batched: &v1.BatchedMigrationStatus{CurrentBatch: 1, TotalBatches: 1},
		}}
		written := want.DeepCopy()
		if err := c.Create(t.Context(), written); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.WithoutCancel(t.Context()), written); err != nil {
				t.Error(err)
			}
		})
		written.Status = *status.DeepCopy()
		if err := c.Status().Update(t.Context(), written); err != nil {
			t.Fatal(err)
		}
		read := &v1.Istio{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(want), read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Spec.UpdateStrategy.WorkloadMigration, read.Spec.UpdateStrategy.WorkloadMigration); diff != "" {
			t.Errorf("spec (-written +read):\n%s", diff)
		}
		if diff := cmp.Diff(status.WorkloadMigration, read.Status.WorkloadMigration); diff != "" {
			t.Errorf("status (-written +read):\n%s", diff)
		}
	})
}
