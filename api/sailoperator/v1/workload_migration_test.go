package v1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

func TestSettings(t *testing.T) {
	defaults := MigrationSettings{
		WorkloadKinds:       []WorkloadKind{WorkloadKindDeployment},
		BatchSize:           1,
		DelayBetweenBatches: 30 * time.Second,
		ReadinessTimeout:    5 * time.Minute,
		MaxReadinessTimeout: 30 * time.Minute,
		FailurePolicy:       FailurePolicyContinueOnError,
	}
	with := func(change func(*MigrationSettings)) MigrationSettings {
		settings := defaults
		settings.Strategy = WorkloadMigrationStrategyBatched
		change(&settings)
		return settings
	}
	batched := func(config BatchedMigrationConfig) *WorkloadMigrationConfig {
		return &WorkloadMigrationConfig{Strategy: WorkloadMigrationStrategyBatched, Batched: &config}
	}
	cases := map[string]struct {
		config *WorkloadMigrationConfig
		want   MigrationSettings
	}{
		"absent":         {nil, defaults},
		"empty":          {&WorkloadMigrationConfig{}, defaults},
		"strategy alone": {&WorkloadMigrationConfig{Strategy: WorkloadMigrationStrategyBatched}, with(func(*MigrationSettings) {})},
		"empty batched":  {batched(BatchedMigrationConfig{}), with(func(*MigrationSettings) {})},
		"settings kept while switched off": {
			&WorkloadMigrationConfig{Batched: &BatchedMigrationConfig{BatchSize: ptr.To[int32](4)}},
			with(func(s *MigrationSettings) { s.Strategy, s.BatchSize = WorkloadMigrationStrategyDisabled, 4 }),
		},
		"batch size": {
			batched(BatchedMigrationConfig{BatchSize: ptr.To[int32](20)}),
			with(func(s *MigrationSettings) { s.BatchSize = 20 }),
		},
		"no delay": {
			batched(BatchedMigrationConfig{DelayBetweenBatches: ptr.To[Duration]("0s")}),
			with(func(s *MigrationSettings) { s.DelayBetweenBatches = 0 }),
		},
		"timeout in mixed units": {
			batched(BatchedMigrationConfig{ReadinessTimeout: ptr.To[Duration]("1h30m")}),
			with(func(s *MigrationSettings) { s.ReadinessTimeout, s.MaxReadinessTimeout = 90*time.Minute, 90*time.Minute }),
		},
		"longest timeout": {
			batched(BatchedMigrationConfig{MaxReadinessTimeout: ptr.To[Duration]("10m")}),
			with(func(s *MigrationSettings) { s.MaxReadinessTimeout = 10 * time.Minute }),
		},
		"bound": {
			batched(BatchedMigrationConfig{MaxVersion: ptr.To("1.24.999")}),
			with(func(s *MigrationSettings) { s.MaxVersion = semver.MustParse("1.24.999") }),
		},
		"bound with v and pre-release": {
			batched(BatchedMigrationConfig{MaxVersion: ptr.To("v1.26.0-rc.1")}),
			with(func(s *MigrationSettings) { s.MaxVersion = semver.MustParse("1.26.0-rc.1") }),
		},
		"kinds": {
			batched(BatchedMigrationConfig{WorkloadKinds: []WorkloadKind{WorkloadKindStatefulSet, WorkloadKindDaemonSet}}),
			with(func(s *MigrationSettings) {
				s.WorkloadKinds = []WorkloadKind{WorkloadKindStatefulSet, WorkloadKindDaemonSet}
			}),
		},
		"fail fast": {
			batched(BatchedMigrationConfig{FailurePolicy: FailurePolicyFailFast}),
			with(func(s *MigrationSettings) { s.FailurePolicy = FailurePolicyFailFast }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.config.Settings()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

// What the API server refuses can still be in the store of a cluster whose CRD lacks the checks: decoding it must
// succeed, and using it must fail with the name of the field.
func TestSettingsOfUncheckedObjects(t *testing.T) {
	cases := map[string]struct{ migration, field string }{
		"duration in words":      {`{"batched":{"delayBetweenBatches":"5 minutes"}}`, "batched.delayBetweenBatches"},
		"empty duration":         {`{"batched":{"readinessTimeout":""}}`, "batched.readinessTimeout"},
		"negative duration":      {`{"batched":{"readinessTimeout":"-1s"}}`, "batched.readinessTimeout"},
		"no time at the longest": {`{"batched":{"maxReadinessTimeout":"0s"}}`, "batched.maxReadinessTimeout"},
		"no time":                {`{"batched":{"readinessTimeout":"0s"}}`, "batched.readinessTimeout"},
		"batch of nothing":       {`{"batched":{"batchSize":0}}`, "batched.batchSize"},
		"version without patch":  {`{"batched":{"maxVersion":"1.26"}}`, "batched.maxVersion"},
		"version in words":       {`{"batched":{"maxVersion":"latest"}}`, "batched.maxVersion"},
		"unknown policy":         {`{"batched":{"failurePolicy":"Retry"}}`, "batched.failurePolicy"},
		"unknown kind":           {`{"batched":{"workloadKinds":["Job"]}}`, "batched.workloadKinds"},
		"unknown strategy":       {`{"strategy":"Canary"}`, "strategy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			list := IstioList{}
			text := `{"items":[{"spec":{"updateStrategy":{"workloadMigration":` + tc.migration + `}}},{"metadata":{"name":"fine"}}]}`
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				t.Fatalf("one bad object broke the list: %v", err)
			}
			_, err := list.Items[0].Spec.UpdateStrategy.WorkloadMigration.Settings()
			if err == nil || !strings.Contains(err.Error(), "workloadMigration."+tc.field) {
				t.Errorf("error %v does not name %s", err, tc.field)
			}
		})
	}
}
