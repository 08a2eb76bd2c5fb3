package v1

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// WorkloadMigrationConfig says whether and how workloads follow the active revision.
type WorkloadMigrationConfig struct {
	// Batched restarts workloads on the active revision, a few at a time.
	// Empty: workloads stay where they are.
	// +kubebuilder:default=""
	// +optional
	Strategy WorkloadMigrationStrategy `json:"strategy,omitempty"`

	// Settings of strategy Batched. Without them, their defaults hold.
	// +optional
	Batched *BatchedMigrationConfig `json:"batched,omitempty"`
}

// WorkloadMigrationStrategy names a way of moving workloads.
//
// +kubebuilder:validation:Enum="";Batched
type WorkloadMigrationStrategy string

// The ways of moving workloads.
const (
	WorkloadMigrationStrategyDisabled WorkloadMigrationStrategy = ""
	WorkloadMigrationStrategyBatched  WorkloadMigrationStrategy = "Batched"
)

// BatchedMigrationConfig is the pace and the bounds of a batched migration.
type BatchedMigrationConfig struct {
	// Kinds of workloads that are moved. Workloads of other kinds stay, and are listed with what to do about them.
	// +kubebuilder:default={Deployment}
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	// +optional
	WorkloadKinds []WorkloadKind `json:"workloadKinds,omitempty"`

	// How many workloads may be restarting at the same time.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	BatchSize *int32 `json:"batchSize,omitempty"`

	// How long to wait after a batch has settled before the next one starts, such as 30s or 2m.
	// +kubebuilder:default="30s"
	// +optional
	DelayBetweenBatches *Duration `json:"delayBetweenBatches,omitempty"`

	// Highest version that workloads are moved to, itself included.
	// 1.26.0 stops before 1.26.1; 1.26.999 takes every patch of 1.26. Left out: no bound.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?(0|[1-9][0-9]{0,8})[.](0|[1-9][0-9]{0,8})[.](0|[1-9][0-9]{0,8})(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)([.](0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?$')",message="must be a full version such as 1.26.0, or 1.26.999 for every patch of 1.26"
	// +optional
	MaxVersion *string `json:"maxVersion,omitempty"`

	// How long a restarted workload may take to become ready before it counts as failed, such as 5m. More than 0s.
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be longer than 0s, which gives a workload no time to become ready; leave it out for the default of 5m"
	// +optional
	ReadinessTimeout *Duration `json:"readinessTimeout,omitempty"`

	// Longest time that a workload can give itself with the annotation sailoperator.io/readiness-timeout, such as 1h.
	// Left out: 30m, or readinessTimeout if that is longer.
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be longer than 0s, which gives a workload no time to become ready; leave it out for the default of 30m"
	// +optional
	MaxReadinessTimeout *Duration `json:"maxReadinessTimeout,omitempty"`

	// What happens after a workload failed.
	// ContinueOnError goes on to the next batch. FailFast starts no further one.
	// +kubebuilder:default=ContinueOnError
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
}

// WorkloadKind is a kind of workloads that can be moved.
//
// +kubebuilder:validation:Enum=Deployment;StatefulSet;DaemonSet
type WorkloadKind string

// The kinds that can be moved.
const (
	WorkloadKindDeployment  WorkloadKind = "Deployment"
	WorkloadKindStatefulSet WorkloadKind = "StatefulSet"
	WorkloadKindDaemonSet   WorkloadKind = "DaemonSet"
)

// FailurePolicy says what a failed workload means for those after it.
//
// +kubebuilder:validation:Enum=ContinueOnError;FailFast
type FailurePolicy string

// The failure policies.
const (
	FailurePolicyContinueOnError FailurePolicy = "ContinueOnError"
	FailurePolicyFailFast        FailurePolicy = "FailFast"
)

// What holds where the spec does not say. The schema has the same defaults, but cannot reach into an absent batched.
const (
	DefaultBatchSize           = 1
	DefaultDelayBetweenBatches = 30 * time.Second
	DefaultReadinessTimeout    = 5 * time.Minute
	DefaultFailurePolicy       = FailurePolicyContinueOnError
	// DefaultMaxReadinessTimeout holds unless the readiness timeout of the Istio is longer.
	DefaultMaxReadinessTimeout = 30 * time.Minute
)

// MigrationSettings is a WorkloadMigrationConfig with every default filled in and every text parsed.
//
// +kubebuilder:object:generate=false
type MigrationSettings struct {
	Strategy            WorkloadMigrationStrategy
	WorkloadKinds       []WorkloadKind
	BatchSize           int
	DelayBetweenBatches time.Duration
	ReadinessTimeout    time.Duration
	MaxReadinessTimeout time.Duration
	// MaxVersion is nil when there is no bound.
	MaxVersion    *semver.Version
	FailurePolicy FailurePolicy
}

// Settings resolves the configuration, which may be nil. The error names every field that cannot be used; it is
// for objects that were stored without the schema's checks.
func (c *WorkloadMigrationConfig) Settings() (MigrationSettings, error) {
	settings := MigrationSettings{
		WorkloadKinds:       []WorkloadKind{WorkloadKindDeployment},
		BatchSize:           DefaultBatchSize,
		DelayBetweenBatches: DefaultDelayBetweenBatches,
		ReadinessTimeout:    DefaultReadinessTimeout,
		MaxReadinessTimeout: DefaultMaxReadinessTimeout,
		FailurePolicy:       DefaultFailurePolicy,
	}
	if c == nil {
		return settings, nil
	}
	settings.Strategy = c.Strategy
	var errs []error
	switch c.Strategy {
	case WorkloadMigrationStrategyDisabled, WorkloadMigrationStrategyBatched:
	default:
		errs = append(errs, fmt.Errorf("workloadMigration.strategy %q is not known", c.Strategy))
	}
	errs = append(errs, c.Batched.resolve(&settings)...)
	return settings, errors.Join(errs...)
}

func (b *BatchedMigrationConfig) resolve(settings *MigrationSettings) (errs []error) {
	if b == nil {
		return nil
	}
	refuse := func(field string, err error) {
		errs = append(errs, fmt.Errorf("workloadMigration.batched.%s: %w", field, err))
	}
	if len(b.WorkloadKinds) > 0 {
		settings.WorkloadKinds = b.WorkloadKinds
	}
	for _, kind := range b.WorkloadKinds {
		switch kind {
		case WorkloadKindDeployment, WorkloadKindStatefulSet, WorkloadKindDaemonSet:
		default:
			refuse("workloadKinds", fmt.Errorf("%q is not known", kind))
		}
	}
	if b.BatchSize != nil {
		settings.BatchSize = int(*b.BatchSize)
		if settings.BatchSize < 1 {
			refuse("batchSize", fmt.Errorf("%d is less than 1", settings.BatchSize))
		}
	}
	if b.DelayBetweenBatches != nil {
		var err error
		if settings.DelayBetweenBatches, err = b.DelayBetweenBatches.Parse(); err != nil {
			refuse("delayBetweenBatches", err)
		}
	}
	if b.ReadinessTimeout != nil {
		var err error
		if settings.ReadinessTimeout, err = b.ReadinessTimeout.Parse(); err != nil {
			refuse("readinessTimeout", err)
		} else if settings.ReadinessTimeout <= 0 {
			refuse("readinessTimeout", fmt.Errorf("%s gives workloads no time; the default is %s", *b.ReadinessTimeout, DefaultReadinessTimeout))
		}
	}
	settings.MaxReadinessTimeout = max(DefaultMaxReadinessTimeout, settings.ReadinessTimeout)
	if b.MaxReadinessTimeout != nil {
		var err error
		if settings.MaxReadinessTimeout, err = b.MaxReadinessTimeout.Parse(); err != nil {
			refuse("maxReadinessTimeout", err)
		} else if settings.MaxReadinessTimeout <= 0 {
			refuse("maxReadinessTimeout", fmt.Errorf("%s gives workloads no time; the default is %s", *b.MaxReadinessTimeout, DefaultMaxReadinessTimeout))
		}
	}
	if b.MaxVersion != nil {
		var err error
		if settings.MaxVersion, err = semver.StrictNewVersion(strings.TrimPrefix(*b.MaxVersion, "v")); err != nil {
			refuse("maxVersion", fmt.Errorf("%q: %w", *b.MaxVersion, err))
		}
	}
	switch b.FailurePolicy {
	case "":
	case FailurePolicyContinueOnError, FailurePolicyFailFast:
		settings.FailurePolicy = b.FailurePolicy
	default:
		refuse("failurePolicy", fmt.Errorf("%q is not known", b.FailurePolicy))
	}
	return errs
}
