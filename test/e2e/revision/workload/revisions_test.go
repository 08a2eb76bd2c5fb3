package workload_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/history"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// named is held by the test that has the Istio called default.
var named sync.Mutex

// ofDefault lets no other test have an Istio called default until this one has ended, and all that it had is gone.
func ofDefault(t *testing.T) *world {
	t.Helper()
	w := theWorld(t)
	named.Lock()
	t.Cleanup(func() {
		defer named.Unlock()
		if err := wait.Try(context.Background(), w.clearDefault); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) clearDefault(ctx context.Context) error {
	left := []error{client.IgnoreNotFound(w.Delete(ctx, &v1.Istio{ObjectMeta: metav1.ObjectMeta{Name: v1.DefaultRevision}}))}
	var revisions v1.IstioRevisionList
	var tags v1.IstioRevisionTagList
	var namespaces corev1.NamespaceList
	if err := errors.Join(
		w.List(ctx, &revisions), w.List(ctx, &tags), w.List(ctx, &namespaces, client.MatchingLabels{labelMesh: v1.DefaultRevision}),
	); err != nil {
		return err
	}
	for i := range tags.Items {
		tag := &tags.Items[i]
		if to := tag.Spec.TargetRef.Name; to == v1.DefaultRevision || strings.HasPrefix(to, v1.DefaultRevision+"-v") {
			left = append(left, fmt.Errorf("IstioRevisionTag %s is still there", tag.Name), client.IgnoreNotFound(w.Delete(ctx, tag)))
		}
	}
	for i := range revisions.Items {
		if owner := metav1.GetControllerOf(&revisions.Items[i]); owner != nil && owner.Name == v1.DefaultRevision {
			left = append(left, fmt.Errorf("IstioRevision %s is still there:%s", revisions.Items[i].Name, harness.DescribeConditions(revisions.Items[i].Status.Conditions)))
		}
	}
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		left = append(left, fmt.Errorf("namespace %s is still there", namespace.Name))
		if namespace.DeletionTimestamp == nil {
			left = append(left, w.Delete(ctx, namespace))
		}
	}
	return errors.Join(left...)
}

// What istio-injection=enabled means is called default. It was the only revision, before the Istio of that name began to
// have one for each version.
func TestMultipleRevisions(t *testing.T) {
	t.Parallel()
	w := ofDefault(t)
	m := w.makeMesh(t, v1.DefaultRevision, func(istio *v1.Istio) {
		injectedByPolicy(istio)
		istio.Spec.UpdateStrategy.Type = v1.UpdateStrategyInPlace
	})
	m.byPolicy = true
	enabled := m.namespace(t, v1.LabelInjection, v1.InjectionEnabled)
	injected := makeDeployment(enabled, "injected")
	m.deploy(t, v1.DefaultRevision, injected)

	m.set(t, func(istio *v1.Istio) { istio.Spec.UpdateStrategy.Type = v1.UpdateStrategyRevisionBased })
	m.serves(t)
	labelled, free := m.namespace(t, v1.LabelRevision, m.from), m.namespace(t)
	byNamespace := makeDeployment(labelled, "labelled")
	override := makeDeployment(free, "override").podLabel(v1.LabelRevision, m.from)
	overrideOfOld := makeDeployment(free, "override-of-old").podLabel(v1.LabelRevision, v1.DefaultRevision)
	m.deploy(t, m.from, byNamespace, override)
	m.deploy(t, v1.DefaultRevision, overrideOfOld)
	all := []builder{injected, byNamespace, override, overrideOfOld}
	seen := m.watch(t)

	m.set(t, version(newVersion))
	m.serves(t)
	m.set(t, inBatches(2, 0))
	status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)

	t.Run("Migrate workloads from multiple old revisions to single active revision", func(t *testing.T) {
		if status.TotalWorkloads != 4 || status.MigratedWorkloads != 4 {
			t.Errorf("it says %+v", status)
		}
		from := map[string]string{}
		for _, b := range all {
			m.runs(t, b, m.to)
			from[b.d.Name] = markOf(t, b.d).From
		}
		want := map[string]string{
			"injected": v1.DefaultRevision, "override-of-old": v1.DefaultRevision, "labelled": m.from, "override": m.from,
		}
		if diff := cmp.Diff(want, from); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		m.restartedOnce(t, all...)
		seen.proves(t, 2)
	})
	t.Run("Handle mix of namespaces using istio.io/rev and istio-injection=enabled", func(t *testing.T) {
		for _, namespace := range []string{enabled, labelled} {
			if diff := cmp.Diff(map[string]string{v1.LabelRevision: m.to}, m.labels(t, namespace)); diff != "" {
				t.Errorf("namespace %s: (-want +got)\n%s", namespace, diff)
			}
		}
	})
	t.Run("Handle workloads with deployment-level revision overrides", func(t *testing.T) {
		for _, b := range []builder{override, overrideOfOld} {
			if got := b.d.Spec.Template.Labels[v1.LabelRevision]; got != m.to {
				t.Errorf("%s has %s", b.d.Name, got)
			}
		}
		if got := m.labels(t, free); len(got) > 0 {
			t.Errorf("their namespace has got %v", got)
		}
	})
}

func TestIstioRevisionTagSupport(t *testing.T) {
	t.Parallel()
	m := theWorld(t).newRealMesh(t, inBatches(2, 0))
	live := harness.Create(t, m.world, makeTag(m.istio.Name+"-live", v1.IstioKind, m.istio.Name))
	fixed := harness.Create(t, m.world, makeTag(m.istio.Name+"-fixed", v1.IstioRevisionKind, m.from))
	m.points(t, live, m.from)
	m.points(t, fixed, m.from)
	shop, bank, free := m.namespace(t, v1.LabelRevision, live.Name), m.namespace(t, v1.LabelRevision, fixed.Name), m.namespace(t)
	tagged := []builder{
		makeDeployment(shop, "cart"), makeDeployment(shop, "till"),
		makeDeployment(free, "own").podLabel(v1.LabelRevision, live.Name),
	}
	pinned := makeDeployment(bank, "vault")
	m.deploy(t, m.from, append(tagged, pinned)...)
	seen, tags := m.watch(t), history.Follow[*v1.IstioRevisionTag](t, m, &v1.IstioRevisionTagList{})

	t.Log("the next control plane is not ready yet")
	m.set(t, version(newVersion))
	if got, want := m.held(t, v1.ReasonRevisionNotReady), "IstioRevision "+m.to+" is not ready; workloads move when it is"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	m.untouched(t, tagged...)
	t.Log("it becomes ready")
	m.istiod(t, m.to)
	status := m.ends(t, m.to, v1.WorkloadMigrationStateCompleted)

	t.Run("Workloads using revision tag migrate when Istio version changes", func(t *testing.T) {
		if status.TotalWorkloads != 3 || status.MigratedWorkloads != 3 {
			t.Errorf("it says %+v", status)
		}
		for _, b := range tagged {
			m.runs(t, b, m.to)
			if _, restarted := b.d.Spec.Template.Annotations[v1.AnnotationRestartedAt]; !restarted {
				t.Errorf("%s was not restarted", b.d.Name)
			}
		}
		m.restartedOnce(t, tagged...)
		m.untouched(t, pinned)
		m.runs(t, pinned, m.from)
		if got := condition(m.istio, v1.ConditionWorkloadsMigrated).Message; !strings.Contains(got, "Deployment "+bank+"/vault (PinnedByTag)") {
			t.Errorf("it does not tell that the vault is pinned: %s", got)
		}
	})
	t.Run("Revision tag target updated before workload migration", func(t *testing.T) {
		moved := func() uint64 {
			for _, event := range tags.Events(t) {
				if event.Object.Name == live.Name && event.Object.Status.IstioRevision == m.to {
					return history.Order(t, event.Object)
				}
			}
			t.Fatal("the tag has not been seen moving")
			return 0
		}()
		for _, event := range seen.Events(t) {
			if markOf(t, event.Object).Target == m.to && history.Order(t, event.Object) < moved {
				t.Fatalf("%s was restarted before the tag had moved", event.Object.Name)
			}
		}
		m.points(t, fixed, m.from)
	})
	t.Run("Namespace labels remain pointing to tag, not direct revision", func(t *testing.T) {
		for namespace, tag := range map[string]string{shop: live.Name, bank: fixed.Name} {
			if diff := cmp.Diff(map[string]string{v1.LabelRevision: tag}, m.labels(t, namespace)); diff != "" {
				t.Errorf("namespace %s: (-want +got)\n%s", namespace, diff)
			}
		}
		if got := tagged[2].d.Spec.Template.Labels[v1.LabelRevision]; got != live.Name {
			t.Errorf("the workload with a label of its own has %s", got)
		}
	})
}

// makeTag refers to an Istio or an IstioRevision.
func makeTag(name, kind, target string) *v1.IstioRevisionTag {
	return &v1.IstioRevisionTag{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.IstioRevisionTagSpec{TargetRef: v1.TargetReference{Kind: kind, Name: target}},
	}
}

// points waits until a tag has been led to a revision.
func (m *mesh) points(t testing.TB, tag *v1.IstioRevisionTag, revision string) {
	t.Helper()
	harness.WaitFor(t, m.world, tag, func(tag *v1.IstioRevisionTag) error {
		if tag.Status.IstioRevision != revision || !strings.Contains(harness.DescribeConditions(tag.Status.Conditions), "Reconciled=True") {
			return fmt.Errorf("it points to %q, not to %s:%s", tag.Status.IstioRevision, revision, harness.DescribeConditions(tag.Status.Conditions))
		}
		return nil
	})
}
