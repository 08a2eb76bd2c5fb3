package rollout

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/kube"
)

var (
	rolloutsByOutcome = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_rollouts_total",
		Help: "Rollouts that have ended, by how: completed, withdrawn, replaced (by another one) or timeout.",
	}, []string{"outcome"})
	phaseDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "fairlead_rollout_phase_duration_seconds",
		Help:    "How long rollouts stay in each phase: Applying, ReadyToPromote and Promoting.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 17),
	}, []string{"phase"})
	rolloutReason = kube.NewReasonGauge("fairlead_rollout_reason",
		"1 for the reason of the condition UpToDate of a Materialize.", "namespace", "name")
)

func init() {
	metrics.Registry.MustRegister(rolloutsByOutcome, phaseDuration, rolloutReason)
	for _, outcome := range []string{"completed", "withdrawn", "replaced", "timeout"} {
		// A rate needs the zero before the first one.
		rolloutsByOutcome.WithLabelValues(outcome)
	}
}

// rolloutMetrics turns consecutive statuses of each Materialize into metrics.
type rolloutMetrics struct {
	// phases has the current phase by key. It is unknown if this process has not seen the start.
	phases sync.Map
}

type phase struct {
	reason v1alpha2.Reason
	since  time.Time
}

func (m *rolloutMetrics) observe(before *v1alpha2.Materialize, status v1alpha2.MaterializeStatus, is v1alpha2.Reason, now time.Time) {
	if outcome := outcomeOf(before.Status, status, is); outcome != "" {
		rolloutsByOutcome.WithLabelValues(outcome).Inc()
	}
	key := client.ObjectKeyFromObject(before)
	last, _ := m.phases.Load(key)
	was, _ := last.(phase)
	if was.reason == is {
		return
	}
	if conditionStatuses[was.reason] == conditionStatuses[v1alpha2.ReasonApplying] {
		phaseDuration.WithLabelValues(string(was.reason)).Observe(now.Sub(was.since).Seconds())
	}
	m.phases.Store(key, phase{is, now})
}

// forget removes what is known of a Materialize that is gone.
func (m *rolloutMetrics) forget(key client.ObjectKey) {
	m.phases.Delete(key)
	rolloutReason.Set("", key.Namespace, key.Name)
}

// outcomeOf is how a rollout ended between two statuses, empty if none did.
func outcomeOf(before, status v1alpha2.MaterializeStatus, is v1alpha2.Reason) string {
	open := before.RequestedRolloutHash != before.LastCompletedRolloutHash
	switch {
	case status.ActiveGeneration > before.ActiveGeneration:
		return "completed"
	case is == v1alpha2.ReasonRolloutTimeout && !hasReason(before, v1alpha2.ReasonRolloutTimeout):
		return "timeout"
	case !open || hasReason(before, v1alpha2.ReasonRolloutTimeout):
		return ""
	case status.RequestedRolloutHash == status.LastCompletedRolloutHash:
		return "withdrawn"
	case status.RequestedRolloutHash != before.RequestedRolloutHash && status.RolloutHashVersion == before.RolloutHashVersion:
		return "replaced"
	}
	return ""
}

func hasReason(status v1alpha2.MaterializeStatus, reason v1alpha2.Reason) bool {
	condition := meta.FindStatusCondition(status.Conditions, v1alpha2.ConditionUpToDate)
	return condition != nil && condition.Reason == string(reason)
}
