package workload_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/injector"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// The versions that most tests go from and to.
const (
	oldVersion = "v1.24.0"
	newVersion = "v1.26.0"
)

// mesh is an Istio with what it serves.
type mesh struct {
	*world
	istio *v1.Istio
	// byPolicy is set when the API server plays the injector, and otherwise each revision needs an istiod.
	byPolicy bool
	from, to string // the revisions of the two versions
}

// newMesh makes an Istio of the old version, with control planes that run elsewhere and no webhooks.
func (w *world) newMesh(t testing.TB, how ...func(*v1.Istio)) *mesh {
	t.Helper()
	m := w.makeMesh(t, shortName(t), append([]func(*v1.Istio){injectedByPolicy}, how...)...)
	m.byPolicy = true
	return m
}

// newRealMesh makes an Istio of the old version, with an istiod. Its control planes are ready when the test has started
// their istiod.
func (w *world) newRealMesh(t testing.TB, how ...func(*v1.Istio)) *mesh {
	t.Helper()
	m := w.createMesh(t, shortName(t), append([]func(*v1.Istio){heldControlPlanes}, how...)...)
	m.istiod(t, m.from)
	m.serves(t)
	return m
}

func heldControlPlanes(istio *v1.Istio) {
	istio.Spec.Values = v1.Values{"podAnnotations": map[string]any{cluster.ReadyAfter: cluster.Held}}
}

func injectedByPolicy(istio *v1.Istio) {
	istio.Spec.Namespace, istio.Spec.Values = policySystem, runsElsewhere()
}

func runsElsewhere() v1.Values {
	return v1.Values{
		"global":       map[string]any{"operatorManageWebhooks": true},
		"istiodRemote": map[string]any{"enabled": true},
	}
}

func (w *world) makeMesh(t testing.TB, name string, how ...func(*v1.Istio)) *mesh {
	t.Helper()
	m := w.createMesh(t, name, how...)
	m.serves(t)
	return m
}

func (w *world) createMesh(t testing.TB, name string, how ...func(*v1.Istio)) *mesh {
	t.Helper()
	istio := &v1.Istio{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.IstioSpec{Version: oldVersion, Namespace: system, UpdateStrategy: v1.IstioUpdateStrategy{
			Type: v1.UpdateStrategyRevisionBased, InactiveRevisionDeletionGracePeriodSeconds: ptr.To[int64](3600),
		}},
	}
	for _, change := range how {
		change(istio)
	}
	m := &mesh{world: w, istio: harness.Create(t, w, istio)}
	m.from, m.to = m.revision(oldVersion), m.revision(newVersion)
	return m
}

// shortName is one that no other test uses, with room for the version behind it.
func shortName(t testing.TB) string {
	name := cluster.Name(t)
	words, number := strings.TrimPrefix(name[:len(name)-6], "test"), name[len(name)-6:]
	return strings.Trim(words[:min(len(words), 16)], "-") + number
}

// revision is the name of the one of a version.
func (m *mesh) revision(version string) string {
	return m.istio.Name + "-" + strings.ReplaceAll(version, ".", "-")
}

// istiod runs a real one behind the revision's Service, as soon as there is one, until the cluster is stopped. The pods of
// a control plane that is held become ready when istiod answers the webhooks.
func (m *mesh) istiod(t testing.TB, revision string) {
	t.Helper()
	if _, err := cluster.Localkube("istiod", "--dir", m.Dir, "--revision", revision, "--wait", wait.Deadline().String()); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, func(ctx context.Context) error {
		var hooks admissionv1.MutatingWebhookConfigurationList
		if err := m.List(ctx, &hooks, client.MatchingLabels{v1.LabelRevision: revision}); err != nil {
			return err
		}
		if len(hooks.Items) == 0 {
			return fmt.Errorf("revision %s has no webhook", revision)
		}
		for _, configuration := range hooks.Items {
			for _, hook := range configuration.Webhooks {
				if len(hook.ClientConfig.CABundle) == 0 {
					return fmt.Errorf("istiod of revision %s has not yet signed %s", revision, configuration.Name)
				}
			}
		}
		return nil
	})
	m.Release(t, system, cluster.ReadyAfter, map[string]string{"app": "istiod", v1.LabelRevision: revision})
}

// serves waits until the control plane of the spec is there.
func (m *mesh) serves(t testing.TB) {
	t.Helper()
	harness.WaitFor(t, m.world, m.istio, func(istio *v1.Istio) error {
		if condition(istio, v1.ConditionReady).Status != metav1.ConditionTrue {
			return fmt.Errorf("it is not ready: %s", harness.DescribeConditions(istio.Status.Conditions))
		}
		return nil
	})
}

// inBatches moves workloads, so many at a time. None is given up for being slow.
func inBatches(size int32, delay time.Duration) func(*v1.Istio) {
	return func(istio *v1.Istio) {
		istio.Spec.UpdateStrategy.WorkloadMigration = &v1.WorkloadMigrationConfig{
			Strategy: v1.WorkloadMigrationStrategyBatched,
			Batched: &v1.BatchedMigrationConfig{
				BatchSize:           &size,
				DelayBetweenBatches: ptr.To(v1.Duration(delay.String())),
				ReadinessTimeout:    ptr.To(v1.Duration(never.String())),
			},
		}
	}
}

// never is a time after which no test runs any more.
const never = 24 * time.Hour

// grace prunes old revisions so long after they were last used.
func grace(period time.Duration) func(*v1.Istio) {
	return func(istio *v1.Istio) {
		istio.Spec.UpdateStrategy.InactiveRevisionDeletionGracePeriodSeconds = ptr.To(int64(period / time.Second))
	}
}

func version(version string) func(*v1.Istio) {
	return func(istio *v1.Istio) { istio.Spec.Version = version }
}

// set changes the Istio.
func (m *mesh) set(t testing.TB, how ...func(*v1.Istio)) {
	t.Helper()
	harness.Change(t, m.world, m.istio, func(istio *v1.Istio) {
		for _, change := range how {
			change(istio)
		}
	})
}

// namespace makes one with labels.
func (m *mesh) namespace(t testing.TB, labels ...string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shortName(t), Labels: map[string]string{labelMesh: m.istio.Name}}}
	if m.byPolicy {
		namespace.Labels[injector.Label] = injector.Policy
	}
	for i := 0; i+1 < len(labels); i += 2 {
		namespace.Labels[labels[i]] = labels[i+1]
	}
	return harness.Create(t, m.world, namespace).Name
}

// label puts a label on a namespace.
func (m *mesh) label(t testing.TB, namespace, key, value string) {
	t.Helper()
	harness.Change(t, m.world, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(n *corev1.Namespace) { n.Labels[key] = value })
}

// labels of a namespace that say something about revisions.
func (m *mesh) labels(t testing.TB, namespace string) map[string]string {
	t.Helper()
	var found corev1.Namespace
	if err := m.Get(t.Context(), client.ObjectKey{Name: namespace}, &found); err != nil {
		t.Fatal(err)
	}
	chosen := map[string]string{}
	for _, label := range []string{v1.LabelRevision, v1.LabelInjection} {
		if value, ok := found.Labels[label]; ok {
			chosen[label] = value
		}
	}
	return chosen
}

// moving waits until the Istio says of its workloads what it should, about the latest spec.
func (m *mesh) moving(t testing.TB, is func(*v1.WorkloadMigrationStatus) error) *v1.WorkloadMigrationStatus {
	t.Helper()
	harness.WaitFor(t, m.world, m.istio, func(istio *v1.Istio) error {
		status := istio.Status.WorkloadMigration
		if status == nil {
			status = &v1.WorkloadMigrationStatus{}
		}
		if condition(istio, v1.ConditionWorkloadsMigrated).Status == metav1.ConditionUnknown {
			return fmt.Errorf("it has not looked at the latest spec:%s", harness.DescribeConditions(istio.Status.Conditions))
		}
		if err := is(status); err != nil {
			return fmt.Errorf("%w; it says %+v%s", err, *status, harness.DescribeConditions(istio.Status.Conditions))
		}
		return nil
	})
	return m.istio.Status.WorkloadMigration
}

// ends waits until the migration to a revision has ended.
func (m *mesh) ends(t testing.TB, target string, as v1.WorkloadMigrationState) *v1.WorkloadMigrationStatus {
	t.Helper()
	return m.moving(t, func(status *v1.WorkloadMigrationStatus) error {
		if status.TargetRevision != target || status.State != as {
			return fmt.Errorf("it is not yet %s to %s", as, target)
		}
		return nil
	})
}

// inBatch waits until a batch is under way.
func (m *mesh) inBatch(t testing.TB, number int32) *v1.WorkloadMigrationStatus {
	t.Helper()
	return m.moving(t, func(status *v1.WorkloadMigrationStatus) error {
		if status.State != v1.WorkloadMigrationStateInProgress || status.Batched == nil || status.Batched.CurrentBatch != number {
			return fmt.Errorf("it is not in batch %d", number)
		}
		return nil
	})
}

// held waits until the workloads stay where they are for a reason, of which these words are said, and returns all that is said.
func (m *mesh) held(t testing.TB, reason v1.Reason, words ...string) string {
	t.Helper()
	harness.WaitFor(t, m.world, m.istio, func(istio *v1.Istio) error {
		got := condition(istio, v1.ConditionWorkloadsMigrated)
		if got.Reason != string(reason) || got.Status != metav1.ConditionFalse {
			return fmt.Errorf("it is not held for reason %s:%s", reason, harness.DescribeConditions(istio.Status.Conditions))
		}
		return harness.CheckMessage(&got, words...)
	})
	return condition(m.istio, v1.ConditionWorkloadsMigrated).Message
}

// pruned waits until a revision is gone, with its control plane.
func (m *mesh) pruned(t testing.TB, revision string) {
	t.Helper()
	harness.WaitForDeletion(t, m.world, &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: revision}})
	wait.Until(t, func(ctx context.Context) error {
		err := m.Get(ctx, client.ObjectKey{Namespace: system, Name: "istiod-" + revision}, &corev1.Service{})
		if err == nil {
			return errors.New("Service istiod-" + revision + " is still there")
		}
		return client.IgnoreNotFound(err)
	})
}
