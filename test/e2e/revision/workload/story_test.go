package workload_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// Two stories of the design in one upgrade. There are charts of 1.26.0 where it has 1.25.0. Without containers there is no
// traffic, but what would carry it: the endpoints that a load balancer sends it to. A request fails where none is ready.
func TestStoryMigration(t *testing.T) {
	t.Parallel()
	const basic, zeroDowntime = "Basic Migration: ", "Zero-Downtime Migration: "
	const size = 2
	m := theWorld(t).newRealMesh(t, grace(0))
	t.Run(basic+"Install Istio v1.24.0 with RevisionBased update strategy", func(t *testing.T) {
		if diff := cmp.Diff(&v1.RevisionSummary{Total: 1, Ready: 1}, m.istio.Status.Revisions); diff != "" || m.istio.Status.ActiveRevisionName != m.from {
			t.Errorf("the active revision is %s of (-want +got)\n%s", m.istio.Status.ActiveRevisionName, diff)
		}
	})

	tag := harness.Create(t, m.world, makeTag(m.istio.Name+"-prod", v1.IstioKind, m.istio.Name))
	m.points(t, tag, m.from)
	var all []builder
	balancers, full, allowed := map[string]endpoints{}, map[string]map[string]int{}, map[string]map[string]int{}
	// serve makes a workload with a Service, which may at times have fewer endpoints than it should.
	serve := func(b builder, atLeast int) {
		namespace, name := b.d.Namespace, b.d.Name
		if balancers[namespace].History == nil {
			balancers[namespace], full[namespace], allowed[namespace] = m.watchEndpoints(t, namespace), map[string]int{}, map[string]int{}
		}
		full[namespace][name], allowed[namespace][name] = int(*b.d.Spec.Replicas), atLeast
		all = append(all, b)
		harness.Create(t, m.world, service(namespace, name))
	}
	for _, revision := range []string{m.from, tag.Name} {
		namespace := m.namespace(t, v1.LabelRevision, revision)
		serve(makeDeployment(namespace, "httpbin").replicas(3), 3)
		serve(makeDeployment(namespace, "sleep"), 1)
	}
	busy := m.namespace(t, v1.LabelRevision, m.from)
	percent, number := intstr.FromString, intstr.FromInt32
	slow := "500ms"
	serve(makeDeployment(busy, "careful").replicas(2).rolls(number(0), number(1)).readyAfter(slow), 2)
	serve(makeDeployment(busy, "no-surge").replicas(2).rolls(number(1), number(0)).readyAfter(slow), 1)
	serve(makeDeployment(busy, "halves").replicas(4).rolls(percent("50%"), percent("50%")).readyAfter(slow), 2)
	m.deploy(t, m.from, all...)

	t.Run(basic+"Deploy sample workloads (httpbin, sleep) in multiple namespaces", func(t *testing.T) {
		for _, b := range all {
			m.sidecars(t, b, m.from)
		}
	})
	t.Run(zeroDowntime+"Deploy service with continuous traffic (load generator)", func(t *testing.T) {
		for namespace, balancer := range balancers {
			balancer.serves(t, full[namespace])
		}
	})
	seen := m.watch(t)
	t.Run(zeroDowntime+"Enable automatic migration with conservative settings", func(t *testing.T) {
		m.set(t, inBatches(size, time.Second))
		m.ofFirstVersion(t)
		m.untouched(t, all...)
	})
	for _, title := range []string{
		basic + "Update Istio to v1.26.0 with workloadMigration.strategy Batched",
		zeroDowntime + "Upgrade Istio version",
	} {
		t.Run(title, func(t *testing.T) {
			m.set(t, version(newVersion))
			m.istiod(t, m.to)
			status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
			if int(status.TotalWorkloads) != len(all) || status.MigratedWorkloads != status.TotalWorkloads {
				t.Errorf("it says %+v", status)
			}
		})
	}
	t.Run(basic+"Verify all workloads migrate to new revision", func(t *testing.T) {
		for _, b := range all {
			m.runs(t, b, m.to)
			m.sidecars(t, b, m.to)
		}
		m.restartedOnce(t, all...)
	})
	t.Run(basic+"Verify workloads remain healthy and traffic flows correctly", func(t *testing.T) {
		for namespace, balancer := range balancers {
			wait.Until(t, func(context.Context) error {
				_, different := balancer.served(t, full[namespace])
				for service, replicas := range full[namespace] {
					if different[service] != 2*replicas {
						return fmt.Errorf("%s in namespace %s had %d different endpoints, want each replaced once", service, namespace, different[service])
					}
				}
				return nil
			})
		}
	})
	t.Run(zeroDowntime+"Monitor service availability during migration", func(t *testing.T) {
		for namespace, balancer := range balancers {
			least, _ := balancer.served(t, full[namespace])
			for service, n := range allowed[namespace] {
				if least[service] < n {
					t.Errorf("%s in namespace %s had %d ready endpoints at a time, want %d at least", service, namespace, least[service], n)
				}
			}
		}
	})
	t.Run(zeroDowntime+"Verify no failed requests (within acceptable threshold)", func(t *testing.T) {
		for namespace, balancer := range balancers {
			least, _ := balancer.served(t, full[namespace])
			for service := range full[namespace] {
				if least[service] == 0 {
					t.Errorf("a request to %s in namespace %s would have failed", service, namespace)
				}
			}
		}
	})
	t.Run(zeroDowntime+"Verify gradual rollout maintains availability", func(t *testing.T) { seen.proves(t, size) })
	m.Operator.CompareMetrics(t, "revision")
	for _, controller := range []string{"istio", "istiorevision", "istiorevisiontag", "workload"} {
		harness.Traces().HasStages(t, controller)
	}
	t.Run(basic+"Verify old control plane can be cleaned up", func(t *testing.T) {
		m.pruned(t, m.from)
		harness.WaitForDeletion(t, m.world, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "istiod-" + m.from}})
		harness.WaitForDeletion(t, m.world, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "istio-sidecar-injector-" + m.from}})
		harness.WaitFor(t, m.world, m.istio, func(istio *v1.Istio) error {
			if diff := cmp.Diff(&v1.RevisionSummary{Total: 1, Ready: 1, InUse: 1}, istio.Status.Revisions); diff != "" {
				return fmt.Errorf("(-want +got)\n%s", diff)
			}
			return nil
		})
	})
}

func service(namespace, app string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// sidecars checks that pods have proxies that talk to the control plane of a revision.
func (m *mesh) sidecars(t testing.TB, b builder, revision string) {
	t.Helper()
	var pods corev1.PodList
	if err := m.List(t.Context(), &pods, client.InNamespace(b.d.Namespace), client.MatchingLabels(b.d.Spec.Selector.MatchLabels)); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("istiod-%s.%s.svc:15012", revision, system)
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			continue
		}
		proxies := slices.DeleteFunc(append(pod.Spec.InitContainers, pod.Spec.Containers...), func(c corev1.Container) bool {
			return c.Name != "istio-proxy" || !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return strings.Contains(e.Value, address) })
		})
		if len(proxies) != 1 {
			t.Errorf("pod %s/%s has no sidecar that talks to %s", pod.Namespace, pod.Name, address)
		}
	}
}

// A PodDisruptionBudget concerns evictions, and no rolling update ever evicts.
func TestStoryFailureRecovery(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newMesh(t, inBatches(2, 0), grace(0))
	shop, bank := m.namespace(t, v1.LabelRevision, m.from), m.namespace(t, v1.LabelRevision, m.from)
	// The others get all the time that they need: one that takes longer than the Istio allows holds no batch any more.
	sick := makeDeployment(shop, "b-problematic").replicas(2).sickOn(m.to).annotate(v1.AnnotationReadinessTimeout, "2s")
	protected := makeDeployment(shop, "c-protected").replicas(2)
	normal := []builder{
		makeDeployment(shop, "a-cart"), makeDeployment(shop, "d-till"), makeDeployment(bank, "ledger"), makeDeployment(bank, "vault"),
	}
	var status *v1.WorkloadMigrationStatus

	for _, b := range []builder{sick, protected} {
		harness.Create(t, m.world, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: b.d.Name},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: b.d.Spec.Selector, MaxUnavailable: &intstr.IntOrString{IntVal: 0},
			},
		})
	}
	t.Run("Deploy workload with PodDisruptionBudget preventing restart", func(t *testing.T) {
		m.deploy(t, m.from, sick, protected)
		for _, b := range []builder{sick, protected} {
			m.refusesEviction(t, b)
		}
	})
	t.Run("Deploy normal workloads", func(t *testing.T) {
		m.deploy(t, m.from, normal...)
	})
	seen := m.watch(t)
	t.Run("Upgrade Istio with automatic migration", func(t *testing.T) {
		m.set(t, version(newVersion))
		status = m.ends(t, m.to, v1.WorkloadMigrationStateFailed)
	})
	t.Run("Verify problematic workload times out but others migrate successfully", func(t *testing.T) {
		for _, b := range append(normal, protected) {
			m.runs(t, b, m.to)
		}
		m.restartedOnce(t, append(normal, protected)...)
		m.refusesEviction(t, protected)
		seen.proves(t, 2)
		if err := m.Get(t.Context(), client.ObjectKeyFromObject(sick.d), sick.d); err != nil {
			t.Fatal(err)
		}
		if sick.d.Status.AvailableReplicas != 2 {
			t.Errorf("the problematic one has %d pods available, want its old ones to serve on", sick.d.Status.AvailableReplicas)
		}
	})
	t.Run("Verify status reports failure with correct details", func(t *testing.T) {
		mark := markOf(t, sick.d)
		if mark.Failed == nil {
			t.Fatalf("the problematic one is marked with %+v", mark)
		}
		want := []v1.WorkloadMigrationFailure{{
			Namespace: shop, Name: sick.d.Name, Kind: "Deployment", Reason: "Readiness timeout exceeded after 2s", Code: v1.ReasonTimeout,
			Timestamp: metav1.NewTime(mark.Failed.Truncate(time.Second)),
		}}
		if diff := cmp.Diff(want, status.Failures); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if status.TotalWorkloads != 6 || status.MigratedWorkloads != 5 || status.FailedWorkloads != 1 {
			t.Errorf("it says %+v", status)
		}
		m.Operator.Measures(t, fmt.Sprintf(`fairlead_migration_workloads{istio=%q,state="Failed"}`, m.istio.Name), func(n float64) bool { return n == 1 })
	})
	t.Run("Verify Events emitted for failure", func(t *testing.T) {
		ofWorkload := m.reported(t, sick.d, "MigrationFailed", "moving to "+m.to+" failed: Readiness timeout exceeded after 2s")
		ofIstio := m.reported(t, m.istio, "MigrationFailed", "5 of 6 workloads run on "+m.to+", 1 failed")
		for _, event := range []string{ofWorkload.Type, ofIstio.Type} {
			if event != corev1.EventTypeWarning {
				t.Errorf("an event is of type %s", event)
			}
		}
	})
	t.Run("Recover", func(t *testing.T) {
		var old v1.IstioRevision
		if err := m.Get(t.Context(), client.ObjectKey{Name: m.from}, &old); err != nil {
			t.Fatalf("the old control plane serves the problematic one no more: %v", err)
		}
		m.heal(t, shop, sick)
		harness.Change(t, m.world, sick.d, func(d *appsv1.Deployment) { delete(d.Annotations, v1.AnnotationReadinessTimeout) })
		m.retry(t)
		m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)
		m.runs(t, sick, m.to)
		m.pruned(t, m.from)
	})
}

// refusesEviction checks that a disruption budget is in force.
func (m *mesh) refusesEviction(t testing.TB, b builder) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := m.List(ctx, &pods, client.InNamespace(b.d.Namespace), client.MatchingLabels(b.d.Spec.Selector.MatchLabels)); err != nil {
			return err
		}
		eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}
		if err := m.SubResource("eviction").Create(ctx, &pods.Items[0], eviction); !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("evict a pod of %s: %v, want it refused", b.d.Name, err)
		}
		return nil
	})
}

// The operator is killed while workloads are on their way, and is dead for as long as one of them has to become ready. Not
// in parallel with others, which have the same operator.
func TestStoryOperatorKilled(t *testing.T) {
	w := theWorld(t)
	m := w.newMesh(t, inBatches(2, 0))
	namespace := m.namespace(t, v1.LabelRevision, m.from)
	sick := makeDeployment(namespace, "a-sick").sickOn(m.to).annotate(v1.AnnotationReadinessTimeout, time.Hour.String())
	all := []builder{sick}
	for i := range 5 {
		all = append(all, makeDeployment(namespace, fmt.Sprintf("w%d", i)).heldOn(m.to))
	}
	first, rest := all[1], all[2:]
	m.deploy(t, m.from, all...)
	seen := m.watch(t)

	t.Log("killed with a batch on its way")
	m.set(t, version(newVersion))
	m.moves(t, sick, m.to)
	m.moves(t, first, m.to)
	w.Operator.Measures(t, fmt.Sprintf(`fairlead_migration_reason{istio=%q,reason="BatchRunning"}`, m.istio.Name), func(n float64) bool { return n == 1 })
	w.Operator.Kill()
	m.release(t, first)
	m.runs(t, first, m.to)
	// The time that a workload has to become ready goes by, whether the operator runs or not.
	began := m.begunEarlier(t, sick.d, time.Hour)

	t.Log("killed again with the next batch on its way")
	w.restart(t)
	for _, b := range rest[:2] {
		m.moves(t, b, m.to)
	}
	w.Operator.Kill()
	m.untouched(t, rest[2:]...)
	m.release(t, rest...)
	w.restart(t)
	status := m.ends(t, m.to, v1.WorkloadMigrationStateFailed)
	if status.TotalWorkloads != 6 || status.MigratedWorkloads != 5 || status.FailedWorkloads != 1 {
		t.Errorf("it says %+v", status)
	}
	for _, b := range all[1:] {
		m.runs(t, b, m.to)
	}
	m.restartedOnce(t, all...)
	seen.proves(t, 2)
	if mark := markOf(t, sick.d); mark.Failed == nil || !mark.Started.Equal(began) {
		t.Errorf("the sick one, which was restarted at %s, is marked with %+v", began, mark)
	}

	t.Log("with nothing left to do, a restart changes nothing")
	m.untouched(t, all...)
	w.restart(t)
	m.set(t, grace(time.Minute))
	m.ends(t, m.to, v1.WorkloadMigrationStateFailed)
	m.untouched(t, all...)
}

// begunEarlier lets it seem that a workload was restarted so much earlier, and returns when that was.
func (m *mesh) begunEarlier(t testing.TB, workload client.Object, earlier time.Duration) time.Time {
	t.Helper()
	var began time.Time
	harness.Change(t, m.world, workload, func(w client.Object) {
		annotations := w.GetAnnotations()
		var mark map[string]any
		if err := json.Unmarshal([]byte(annotations[v1.AnnotationMigration]), &mark); err != nil {
			t.Fatal(err)
		}
		began = markIn(t, w).Started.Add(-earlier)
		mark["started"] = began.Format(time.RFC3339Nano)
		text, err := json.Marshal(mark)
		if err != nil {
			t.Fatal(err)
		}
		annotations[v1.AnnotationMigration] = string(text)
		w.SetAnnotations(annotations)
	})
	return began
}
