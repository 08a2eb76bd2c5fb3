package workload_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// disturbedWrites moves ten workloads again and again, each time with another write of the operator disturbed: some of
// its writes, or every one in full, which takes minutes and is for `make e2e-full`.
func disturbedWrites(t *testing.T, w *world) {
	s := w.newShuttle(t)
	config, err := clientcmd.BuildConfigFromFlags("", w.OperatorKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scenario := faults.Scenario{Config: config, Setup: s.play, Counted: ofMigration, Timeout: wait.Deadline()}
	// To be killed before a write is, to what comes after, the same as to be killed after the one before it.
	killed := faults.CutAfter()
	refused := []faults.Action{faults.Conflict(), faults.TooManyRequests(time.Second)}
	choose := faults.At(t, map[string][]faults.Action{
		"deployments.apps 1": {killed}, // the first that moves
		"deployments.apps 3": refused[:1],
		"deployments.apps 5": {killed}, // the mark of the one that failed
	})
	if faults.Full() {
		choose = func(k int, _ faults.Log) []faults.Action {
			if k%3 == 0 {
				return append([]faults.Action{killed, faults.InternalError()}, refused...)
			}
			return []faults.Action{killed}
		}
	}
	faults.DisturbWrites(t, scenario, choose)
}

// ofMigration matches what a migration writes. The status of an Istio has another author, who is killed with it.
func ofMigration(r faults.Request) bool {
	switch r.Kind() {
	case "namespaces", "deployments.apps", "istios.sailoperator.io/status":
		return faults.Write(r)
	}
	return false
}

// shuttle moves workloads from one revision to another, and the next ones back. Both revisions stay.
type shuttle struct {
	*mesh
	namespaces []string
	all        []builder
	version    string
	seen       watcher
}

const shuttleSize = 4

func (w *world) newShuttle(t *testing.T) *shuttle {
	t.Helper()
	w.start(t)
	defer w.Operator.Kill()
	if err := w.anchor(); err != nil {
		t.Fatal(err)
	}
	m := w.newMesh(t, inBatches(shuttleSize, 0))
	m.set(t, version(newVersion))
	m.serves(t)
	s := &shuttle{mesh: m, version: newVersion}
	for range 3 {
		s.namespaces = append(s.namespaces, m.namespace(t))
	}
	return s
}

// play begins with ten workloads on the revision that the last ones went to, and asks for the other one.
func (s *shuttle) play(t testing.TB) faults.World {
	s.version = map[string]string{oldVersion: newVersion, newVersion: oldVersion}[s.version]
	s.from, s.to = s.to, s.from
	for _, namespace := range s.namespaces[:2] {
		s.label(t, namespace, v1.LabelRevision, s.from)
	}
	s.all = nil
	for i := range 10 {
		b := makeDeployment(s.namespaces[i%3], fmt.Sprintf("w%d", i))
		if b.d.Namespace == s.namespaces[2] {
			b.podLabel(v1.LabelRevision, s.from)
		}
		s.all = append(s.all, b)
	}
	s.all[0].sickOn(s.to).annotate(v1.AnnotationReadinessTimeout, "1s")
	s.deploy(t, s.from, s.all...)
	s.seen = s.watch(t)
	s.set(t, version(s.version))
	return faults.World{
		Run:      harness.InProcessOperator(t, v1.PassageRevision),
		Settled:  s.settled,
		Snapshot: func(ctx context.Context) (map[string]string, error) { return s.snapshot(ctx, t) },
		Teardown: func() { s.clear(t) },
	}
}

func (s *shuttle) settled(ctx context.Context) error {
	istio := &v1.Istio{}
	if err := s.Get(ctx, client.ObjectKeyFromObject(s.istio), istio); err != nil {
		return err
	}
	status := istio.Status.WorkloadMigration
	if status == nil || condition(istio, v1.ConditionWorkloadsMigrated).Reason != string(v1.ReasonMigrationFailed) {
		return fmt.Errorf("it has not ended: %+v%s", status, harness.DescribeConditions(istio.Status.Conditions))
	}
	want := &v1.WorkloadMigrationStatus{
		State: v1.WorkloadMigrationStateFailed, TargetRevision: s.to,
		TotalWorkloads: 10, MigratedWorkloads: 9, FailedWorkloads: 1, Failures: status.Failures,
		StartTime: status.StartTime, CompletionTime: status.CompletionTime, Batched: status.Batched,
	}
	// The one that failed keeps the old revision. That is said a little later than the rest.
	revisions := &v1.RevisionSummary{Total: 2, Ready: 2, InUse: 2}
	if diff := cmp.Diff(want, status) + cmp.Diff(revisions, istio.Status.Revisions); diff != "" {
		return fmt.Errorf("(-want +got)\n%s", diff)
	}
	return nil
}

// snapshot is all that a migration has to do with, but for when it was, and how often each workload was restarted.
func (s *shuttle) snapshot(ctx context.Context, t testing.TB) (map[string]string, error) {
	replay := s.seen.replay(t)
	if replay.most > shuttleSize {
		return nil, fmt.Errorf("%d were restarting at once: %v", replay.most, replay.atMost)
	}
	if wrong := append(replay.shortages, replay.interrupted...); len(wrong) > 0 {
		return nil, errors.New(strings.Join(wrong, "; "))
	}
	for _, b := range s.all {
		if got := s.rollouts(t, b); got != "2" {
			return nil, fmt.Errorf("Deployment %s is at rollout %s, and should have been restarted once", b.d.Name, got)
		}
	}
	names := map[string]string{s.istio.Name: "MESH", s.from: "FROM", s.to: "TO", oldVersion: "VERSION", newVersion: "VERSION"}
	for i, namespace := range s.namespaces {
		names[namespace] = fmt.Sprintf("NAMESPACE-%d", i)
	}
	dump := faults.Dump{
		Kinds: []schema.GroupVersionKind{
			corev1.SchemeGroupVersion.WithKind("Namespace"), v1.GroupVersion.WithKind(v1.IstioKind),
			appsv1.SchemeGroupVersion.WithKind("Deployment"),
		},
		Names: names,
		// What the controller of Deployments says has hashes of templates in it, and the time is part of those; it also
		// counts pods that are still going.
		Scrub: func(object *unstructured.Unstructured) {
			if object.GetKind() == "Deployment" {
				unstructured.RemoveNestedField(object.Object, "status")
			}
			unstructured.RemoveNestedField(object.Object, "status", "conditions")
			unstructured.RemoveNestedField(object.Object, "status", "observedGeneration")
			unstructured.RemoveNestedField(object.Object, "metadata", "generation")
			object.SetManagedFields(nil)
		},
	}
	all, err := dump.Snapshot(ctx, s)
	for key := range all {
		if !strings.Contains(key, "NAMESPACE-") && !strings.Contains(key, "MESH") {
			delete(all, key)
		}
	}
	return all, err
}

// clear removes the workloads, and leaves the rest for the next ones.
func (s *shuttle) clear(t testing.TB) {
	for _, b := range s.all {
		err := errors.Join(
			s.Delete(context.Background(), b.d, client.PropagationPolicy(metav1.DeletePropagationForeground)),
			wait.Try(context.Background(), func(ctx context.Context) error {
				err := s.Get(ctx, client.ObjectKeyFromObject(b.d), &appsv1.Deployment{})
				if err == nil {
					return fmt.Errorf("Deployment %s is still there", b.d.Name)
				}
				return client.IgnoreNotFound(err)
			}),
		)
		if err != nil {
			t.Error(err)
		}
	}
}
