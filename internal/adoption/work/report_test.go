package work

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// An outage of a cluster is on its Cluster: only a Work that waits to be written says so too, and what is applied stays applied.
func TestHeldStatus(t *testing.T) {
	applied := func(observed int64) func(*Observed) {
		return func(o *Observed) {
			o.Work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, ObservedGeneration: observed}}
		}
	}
	for name, c := range map[string]struct {
		hold    passage.Code
		change  []func(*Observed)
		written bool
	}{
		"the cluster leaves":                       {model.ReasonLeaving, nil, false},
		"suspended":                                {model.ReasonSuspended, nil, true},
		"suspended, applied before":                {model.ReasonSuspended, []func(*Observed){applied(2)}, true},
		"unreachable, never written":               {model.ReasonUnreachable, []func(*Observed){unreachable}, true},
		"unreachable, changed since":               {model.ReasonUnreachable, []func(*Observed){unreachable, applied(1)}, true},
		"unreachable, applied":                     {model.ReasonUnreachable, []func(*Observed){unreachable, applied(2)}, false},
		"unreachable, being deleted":               {model.ReasonUnreachable, []func(*Observed){unreachable, deleted}, false},
		"not connected yet, after a restart":       {model.ReasonUnreachable, nil, false},
		"not checked yet, and without a condition": {model.ReasonUnreachable, []func(*Observed){func(o *Observed) { o.Cluster.Status.Conditions = nil }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Cluster: readyCluster(), Work: workFor(t, false)}
			o.Work.Generation = 2
			for _, change := range c.change {
				change(&o)
			}
			status := HeldStatus(o, passage.Because(c.hold, "wait"), now)
			if (status != nil) != c.written {
				t.Fatalf("got %v", status)
			}
			if status == nil {
				return
			}
			if got := meta.FindStatusCondition(status.Conditions, workv1alpha1.ConditionApplied); got.Status != metav1.ConditionFalse || got.Reason != string(c.hold) || got.ObservedGeneration != 2 {
				t.Errorf("got %v", got)
			}
		})
	}
}

// What was written is recorded after a write, and kept while nothing is written: otherwise drift would pass for what was written.
func TestStepStatus(t *testing.T) {
	manifest := adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 1}")
	live := adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 1, strategy: Rolling}\nstatus: {updatedReplicas: 1, availableReplicas: 1}")
	written := newRecord(manifest, live)
	for action, want := range map[passage.Action]Record{
		model.ActionNone: {"before", "then"}, model.ActionCreate: written, model.ActionTakeOver: written, model.ActionUpdate: written,
	} {
		work := workFor(t, false)
		work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{
			{Identifier: workv1alpha1.ResourceIdentifier{Ordinal: 0}, WrittenManifest: "other"},
			{Identifier: workv1alpha1.ResourceIdentifier{Ordinal: 1}, WrittenManifest: "before", WrittenObject: "then"},
		}
		got := StepStatus(work, Object{Ordinal: 1, Manifest: manifest, Live: live}, action)
		id := workv1alpha1.ResourceIdentifier{Ordinal: 1, Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "it"}
		if (Record{got.WrittenManifest, got.WrittenObject}) != want || got.Identifier != id || got.Health != "Healthy" ||
			string(got.Status.Raw) != `{"availableReplicas":1,"updatedReplicas":1}` {
			t.Errorf("%s: got %+v", action, got)
		}
	}
	if got := StepStatus(workFor(t, false), Object{Manifest: manifest, Live: manifest}, model.ActionCreate); got.Status != nil || got.Health != "Unhealthy" {
		t.Errorf("without a status: %+v", got)
	}
}

// Works are enqueued when their cluster can be reached again, and not with each of its heartbeats.
func TestBecameReady(t *testing.T) {
	ready := func(is metav1.ConditionStatus) client.Object {
		return &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: is}}}}
	}
	for name, c := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"reachable again":         {ready(metav1.ConditionFalse), ready(metav1.ConditionTrue), true},
		"reachable at last":       {&clusterv1alpha1.Cluster{}, ready(metav1.ConditionTrue), true},
		"still reachable":         {ready(metav1.ConditionTrue), ready(metav1.ConditionTrue), false},
		"no longer reachable":     {ready(metav1.ConditionTrue), ready(metav1.ConditionFalse), false},
		"reachable, unknown then": {ready(metav1.ConditionUnknown), ready(metav1.ConditionTrue), true},
	} {
		if got := becameReady.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// A Work that the cache has in a version before the last write is not reconciled. If the API server has lost the write, it is.
func TestStaleWorkWaits(t *testing.T) {
	s := newStage(t, workFor(t, false), nil)
	reads := 0
	s.west.On = func(string, client.Object) error { reads++; return forbidden }
	for _, c := range []struct {
		name  string
		at    time.Time
		stale bool
	}{{"just written", s.clock, true}, {"written long ago", s.clock.Add(-time.Hour), false}} {
		reads = 0
		s.reconciler.freshness.versions.Store(s.work.UID, lastWrite{"999999", c.at})
		result, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.work)})
		if err != nil || (result.RequeueAfter == cacheDelay) != c.stale || (reads == 0) != c.stale {
			t.Errorf("%s: %v, %v, %d requests", c.name, result, err, reads)
		}
	}
}

// A manifest that cannot be read is an error that names its Work, and nothing else is asked of the cluster.
func TestManifestThatCannotBeRead(t *testing.T) {
	work := workFor(t, false)
	s := newStage(t, work, nil)
	work.Spec.Workload.Manifests[0].Raw = []byte(`{"kind":`)
	s.west.On = func(verb string, _ client.Object) error { t.Errorf("%s", verb); return nil }
	_, err := s.reconciler.observeMember(t.Context(), s.member, Observed{Work: work}, 0)
	if err == nil || !strings.HasPrefix(err.Error(), "read manifest 0 of Work karmada-es-west/it: ") {
		t.Errorf("got %v", err)
	}
}

// A large status is kept in part: as much as tells how the object is, and whether it has finished.
func TestRawStatusIsBounded(t *testing.T) {
	job := adoptiontest.Object(t, "Job batch/v1\nstatus: {succeeded: 1, conditions: [{type: Complete, status: 'True'}]}")
	status := job.Object["status"].(map[string]any)
	if got := rawStatus(job); !strings.Contains(string(got.Raw), "succeeded") || !manifest.HasFinished(job, got.Raw) {
		t.Errorf("a small status is %s", got.Raw)
	}
	status["completedIndexes"] = strings.Repeat("1,", maxRawStatus)
	if got := rawStatus(job); got == nil || len(got.Raw) > maxRawStatus || !manifest.HasFinished(job, got.Raw) {
		t.Errorf("a large status is %+v", got)
	}
	status["phase"] = strings.Repeat("p", maxRawStatus)
	if got := rawStatus(job); got != nil {
		t.Errorf("a status with large conditions has %d bytes", len(got.Raw))
	}
}
