package scale_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const (
	environments = 500
	// startWithin is how long an operator may take to look at all of them.
	startWithin = 30 * time.Second
)

// BenchmarkRolloutStart is what it costs to start an operator over 500 environments that are as they should be. The API
// server itself tells that nothing is written.
func BenchmarkRolloutStart(b *testing.B) {
	h := newHub(b)
	first := h.operator(b, "--leader-elect=false")
	h.served(b, first)
	h.rollOut(b)
	// What stands in front of an environment follows when that is up to date.
	h.looked(b, first, time.Now())
	first.Kill()
	for round := 1; b.Loop(); round++ {
		before, err := serverPage(b.Context(), h.kube)
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		p := h.operator(b, "--leader-elect=false")
		took, own := h.looked(b, p, began)
		after, err := serverPage(b.Context(), h.kube)
		if err != nil {
			b.Fatal(err)
		}
		p.Kill()

		made := requestsOf(after).since(requestsOf(before))
		_, reads := asks(own)
		written := made.writes()
		printRows(fmt.Sprintf("An operator starts over %d environments with nothing to do, round %d.", environments, round),
			[]string{"", "limit", ""},
			[]string{"all looked at after", startWithin.String(), fmt.Sprintf("%.1f s", took.Seconds())},
			[]string{"writes by anybody", "0", written.String()},
			[]string{"reads by the operator", "", fmt.Sprintf("%.0f", reads)},
			[]string{"processor time of the operator", "", fmt.Sprintf("%.1f s", own.sum("process_cpu_seconds_total", nil))},
		)
		b.ReportMetric(took.Seconds(), "s-to-look")
		b.ReportMetric(written.total(), "writes")
		if took > startWithin {
			b.Errorf("an operator takes %s to look at %d environments: more than %s", took, environments, startWithin)
		}
		for what, count := range written {
			b.Errorf("with nothing to do, there was written: %s %s, %.0f times", what.verb, what.resource, count)
		}
	}
}

// rollOut has the operator make all environments. Nobody runs pods here, so it is told that they are ready.
func (h *hub) rollOut(b *testing.B) {
	b.Helper()
	began := time.Now()
	for i := range environments {
		namespace := namespaceName(i / 50)
		if i%50 == 0 {
			if err := h.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
				b.Fatal(err)
			}
		}
		m := &v1alpha2.Materialize{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("mz-%d", i%50)}}
		m.Spec.EnvironmentdImageRef, m.Spec.BackendSecretName = "materialize/environmentd:v26.1.0", "backend"
		if err := h.Create(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
	err := wait.Try(b.Context(), func(ctx context.Context) error {
		if err := h.ready(ctx); err != nil {
			return err
		}
		var all v1alpha2.MaterializeList
		if err := h.List(ctx, &all); err != nil {
			return err
		}
		done := 0
		for _, m := range all.Items {
			if meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha2.ConditionUpToDate) {
				done++
			}
		}
		if done < environments {
			return fmt.Errorf("%d of %d environments serve", done, environments)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("made %d environments in %.0f s\n", environments, time.Since(began).Seconds())
}

// ready says of each StatefulSet what nobody else would here.
func (h *hub) ready(ctx context.Context) error {
	var sets appsv1.StatefulSetList
	if err := h.List(ctx, &sets); err != nil {
		return err
	}
	for _, set := range sets.Items {
		if set.Status.ObservedGeneration == set.Generation {
			continue
		}
		set.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UpdatedReplicas: 1, CurrentReplicas: 1,
			CurrentRevision: "first", UpdateRevision: "first",
		}
		if err := h.Status().Update(ctx, &set); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// looked waits until an operator has looked at all environments, and then for a while that nothing more comes.
func (h *hub) looked(b *testing.B, p *harness.Operator, began time.Time) (time.Duration, page) {
	b.Helper()
	rollout := map[string]string{"controller": "rollout"}
	var took time.Duration
	var reconciles float64
	var own page
	err := wait.Try(b.Context(), func(ctx context.Context) error {
		if err := p.Alive(); err != nil {
			return err
		}
		var err error
		if own, err = operatorPage(ctx, h.metrics); err != nil {
			return err
		}
		done, left := own.sum("controller_runtime_reconcile_total", rollout), own.sum("workqueue_depth", rollout)
		if done != reconciles || took == 0 {
			reconciles, took = done, time.Since(began)
		}
		if done < environments || left > 0 || time.Since(began)-took < 3*time.Second {
			return fmt.Errorf("it has looked %.0f times, and has to %.0f times more", done, left)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return took, own
}
