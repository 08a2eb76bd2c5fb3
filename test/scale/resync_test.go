package scale_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

const revisions = 20

func revisionName(i int) string { return fmt.Sprintf("r%02d", i) }

// BenchmarkResync is what it costs to look again at 20 control planes that are as they should be. The API server itself
// tells that nothing is written.
func BenchmarkResync(b *testing.B) {
	w := installRevisions(b)
	b.Run("touched", func(b *testing.B) {
		// What was just installed is compared once in full.
		w.touch(b)
		w.settled(b, revisions)
		for round := 1; b.Loop(); round++ {
			done := w.measure(b, fmt.Sprintf("every revision touched, round %d", round), w.touch)
			// What has not changed is not read again; now and then, a watch is renewed.
			if done.reads >= revisions {
				b.Errorf("to look at %d revisions again, the operator has read %.0f times", revisions, done.reads)
			}
		}
	})
	b.Run("restarted", func(b *testing.B) {
		for round := 1; b.Loop(); round++ {
			w.measure(b, fmt.Sprintf("operator restarted, round %d", round), w.restart)
		}
	})
}

// installed is a hub with revisions that are all healthy. Nothing runs in it that would write by itself.
type installed struct {
	client.Client
	cluster  *cluster.Cluster
	kube     kubernetes.Interface
	operator *process
}

func installRevisions(b *testing.B) *installed {
	start := time.Now()
	w := &installed{cluster: cluster.Start(b, cluster.Options{Profile: "hub"})}
	scheme, err := operator.NewScheme()
	if err != nil {
		b.Fatal(err)
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	if w.kube, err = kubernetes.NewForConfig(w.cluster.Config()); err != nil {
		b.Fatal(err)
	}
	w.operator = startOperator(b, w.cluster.Kubeconfig())
	until(b, time.Minute, func() bool { return strings.Contains(w.operator.Log.Since(0), `"msg":"ready"`) })
	if w.Client, err = client.New(w.cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		b.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "istio-system"}}
	if err := w.Create(b.Context(), namespace); err != nil {
		b.Fatal(err)
	}
	for i := range revisions {
		revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: revisionName(i)}}
		revision.Spec.Version = []string{"v1.24.0", "v1.26.0"}[i%2]
		if err := w.Create(b.Context(), revision); err != nil {
			b.Fatal(err)
		}
	}
	until(b, 5*time.Minute, func() bool { return w.healthy(b) == revisions })
	fmt.Printf("installed %d revisions in %.0f s\n", revisions, time.Since(start).Seconds())
	return w
}

// healthy says of each istiod what nobody else would here, and counts the revisions that are as they should be.
func (w *installed) healthy(b *testing.B) int {
	b.Helper()
	var deployments appsv1.DeploymentList
	if err := w.List(b.Context(), &deployments); err != nil {
		b.Fatal(err)
	}
	for _, d := range deployments.Items {
		if d.Status.ObservedGeneration == d.Generation {
			continue
		}
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		}
		if err := w.Status().Update(b.Context(), &d); err != nil {
			b.Fatal(err)
		}
	}
	var list v1.IstioRevisionList
	if err := w.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	return len(slices.DeleteFunc(list.Items, func(r v1.IstioRevision) bool { return r.Status.State != v1.StateHealthy }))
}

// touch gives the operator a reason to look at each revision, and no more.
func (w *installed) touch(b *testing.B) (own requests) {
	b.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/touched":%q}}}`, time.Now())
	for i := range revisions {
		revision := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: revisionName(i)}}
		if err := w.Patch(b.Context(), revision, client.RawPatch(types.MergePatchType, patch)); err != nil {
			b.Fatal(err)
		}
	}
	return requests{{"PATCH", "istiorevisions"}: revisions}
}

func (w *installed) restart(b *testing.B) (own requests) {
	b.Helper()
	w.operator.stop(b)
	w.operator = startOperator(b, w.cluster.Kubeconfig())
	return nil
}

// measure what the operator does about an occasion. What the occasion itself has written does not count.
func (w *installed) measure(b *testing.B, title string, occasion func(*testing.B) requests) looks {
	b.Helper()
	before, looksBefore := w.settled(b, 0)
	pid := w.operator.Pid()
	own := occasion(b)
	if w.operator.Pid() != pid {
		looksBefore = looks{}
	}
	after, looksAfter := w.settled(b, looksBefore.reconciles+revisions)

	made := after.since(before)
	done := looksAfter.since(looksBefore)
	fmt.Printf("%s: %.0f reconciles, %.2f s of processor time, %.0f reads by the operator, requests to the API server by all: %s\n",
		title, done.reconciles, done.processor, done.reads, made.since(own))
	b.ReportMetric(done.reconciles, "reconciles")
	b.ReportMetric(done.processor*1000/done.reconciles, "cpu-ms/reconcile")
	var writes float64
	for what, count := range made.writes().since(own) {
		writes += count
		b.Errorf("with nothing to do, the operator wrote: %s %s, %.0f times", what.verb, what.resource, count)
	}
	b.ReportMetric(writes, "writes")
	return done
}

// looks are what the operator has done since it was started.
type looks struct{ reconciles, processor, reads float64 }

func (l looks) since(earlier looks) looks {
	return looks{l.reconciles - earlier.reconciles, l.processor - earlier.processor, l.reads - earlier.reads}
}

// settled waits until the operator has looked at so many revisions, and at all that it was told to look at, and then
// until the API server has not been written to for a while.
func (w *installed) settled(b *testing.B, atLeast float64) (requests, looks) {
	b.Helper()
	var done looks
	var count requests
	var quietSince time.Time
	until(b, 2*time.Minute, func() bool {
		own, err := operatorPage(b.Context(), w.operator.address)
		if err != nil {
			return false
		}
		server, err := serverPage(b.Context(), w.kube)
		if err != nil {
			b.Fatal(err)
		}
		labels := map[string]string{"controller": "istiorevision"}
		queued := own.sum("workqueue_adds_total", labels)
		now := looks{
			own.sum("controller_runtime_reconcile_total", labels), own.sum("process_cpu_seconds_total", nil),
			own.sum("rest_client_requests_total", map[string]string{"method": "GET"}),
		}
		asked := requestsOf(server)
		written := asked.since(count).writes()
		if now.reconciles < atLeast || now.reconciles != queued || now.reconciles != done.reconciles || len(written) > 0 {
			quietSince = time.Now()
		}
		done, count = now, asked
		return time.Since(quietSince) > time.Second
	})
	return count, done
}
