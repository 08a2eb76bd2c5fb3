package workload

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/internal/passage"
)

var (
	workloadsByState = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_migration_workloads",
		Help: "Workloads of an Istio's last migration, by state.",
	}, []string{"istio", "state"})
	batchDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "fairlead_migration_batch_duration_seconds",
		Help:    "From the start of a batch to the end of its last workload.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 12),
	}, []string{"istio"})
	readinessTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "fairlead_migration_readiness_seconds",
		Help:    "From the restart of a workload until its new pods were ready.",
		Buckets: prometheus.ExponentialBuckets(0.5, 2, 12),
	}, []string{"istio"})
	migrationReason = kube.NewReasonGauge("fairlead_migration_reason",
		"1 for the reason of the condition WorkloadsMigrated of an Istio, and while workloads move, for what the next batch waits for: "+
			"Preparing, BatchRunning or BatchDelay.", "istio")
)

func init() {
	metrics.Registry.MustRegister(workloadsByState, batchDuration, readinessTime, migrationReason)
}

// metricsRecorder derives metrics from consecutive plans of each Istio.
type metricsRecorder struct {
	mu sync.Mutex
	// underway has the start of each running move, by Istio.
	underway map[string]map[passage.Object]time.Time
	batch    map[string]openBatch
	now      func() time.Time
}

// openBatch is a batch, and when its first workload was started.
type openBatch struct {
	number int
	at     time.Time
}

func newMetricsRecorder() *metricsRecorder {
	return &metricsRecorder{
		underway: map[string]map[passage.Object]time.Time{}, batch: map[string]openBatch{}, now: time.Now,
	}
}

func (m *metricsRecorder) observe(istio string, d passage.Decision, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	migrationReason.Set(reason, istio)
	counts := d.Plan.Counts()
	for state, n := range map[passage.State]int{
		passage.Pending: counts.Pending, passage.Running: counts.Running, passage.Done: counts.Done,
		passage.Failed: counts.Failed, passage.Skipped: counts.Skipped,
	} {
		workloadsByState.WithLabelValues(istio, string(state)).Set(float64(n))
	}
	before := m.underway[istio]
	running := map[passage.Object]time.Time{}
	for i := range d.Plan.Steps {
		step := &d.Plan.Steps[i]
		switch since, was := before[step.Object]; {
		case step.State == passage.Running:
			running[step.Object] = step.StartedAt
		case step.State == passage.Done && was:
			ended := m.now()
			if !step.EndedAt.IsZero() {
				ended = step.EndedAt
			}
			readinessTime.WithLabelValues(istio).Observe(ended.Sub(since).Seconds())
		}
	}
	m.underway[istio] = running
	m.observeBatch(istio, d, running)
}

// reasonOf is the reason of the condition, or why a migration that goes on starts nothing at the moment.
func reasonOf(condition *metav1.Condition, d passage.Decision) string {
	switch {
	case condition == nil:
		return ""
	case condition.Reason == string(v1.ReasonMigrating) && d.Reason != nil:
		return string(d.Reason.Code)
	}
	return condition.Reason
}

func (m *metricsRecorder) observeBatch(istio string, d passage.Decision, running map[passage.Object]time.Time) {
	open, found := m.batch[istio]
	if found && (len(running) == 0 || d.Batch != open.number) {
		batchDuration.WithLabelValues(istio).Observe(m.now().Sub(open.at).Seconds())
		delete(m.batch, istio)
		found = false
	}
	if found || len(running) == 0 {
		return
	}
	first := m.now()
	for _, since := range running {
		first = earliest(first, since)
	}
	m.batch[istio] = openBatch{d.Batch, first}
}

func (m *metricsRecorder) forget(istio string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.underway, istio)
	delete(m.batch, istio)
	migrationReason.Set("", istio)
	for _, vector := range []*prometheus.MetricVec{workloadsByState.MetricVec, batchDuration.MetricVec, readinessTime.MetricVec} {
		vector.DeletePartialMatch(prometheus.Labels{"istio": istio})
	}
}
