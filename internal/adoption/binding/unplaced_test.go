package binding

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// A Work in a cluster that the template no longer goes to is deleted only when nothing is lost by that.
func TestPlanOfUnplacedWorks(t *testing.T) {
	to := func(clusters ...string) func(*Observed) {
		return func(o *Observed) {
			o.Binding.Spec.Clusters = nil
			for _, cluster := range clusters {
				o.Binding.Spec.Clusters = append(o.Binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster, Replicas: 2})
			}
		}
	}
	// has gives a cluster the Work that it should have, with a condition Applied, and with an object if it has had one.
	has := func(cluster string, is metav1.ConditionStatus, object bool) func(*Observed) {
		return func(o *Observed) {
			for _, step := range Decide(*o).Steps {
				if step.Object.Cluster != cluster {
					continue
				}
				work := step.Work.DeepCopy()
				work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionApplied, Status: is}}
				if object {
					work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{}}
				}
				o.Works[cluster] = work
			}
		}
	}
	suspended := func(is bool) func(*Observed) {
		return func(o *Observed) {
			o.Binding.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(is)}}
		}
	}
	divided := func(o *Observed) {
		o.Binding.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaScheduling{ReplicaSchedulingType: policyv1alpha1.ReplicasDivided}}
	}
	changed := func(o *Observed) { o.Works["east"].Spec.Workload.Manifests[0].Raw = []byte(`{}`) }
	restored := func(o *Observed) { model.RestoreIn(o.Binding, workv1alpha2.TargetCluster{Name: "west"}) }
	preserved := func(o *Observed) { o.Binding.Spec.PreserveResourcesOnDeletion = ptr.To(true) }
	unclaimed := func(o *Observed) { model.Claim(o.Binding, model.PolicyKey{}) }
	const applied, conflict = metav1.ConditionTrue, metav1.ConditionFalse
	for name, c := range map[string]struct {
		change  []func(*Observed)
		want    string
		awaited string
	}{
		"applied elsewhere":                         {[]func(*Observed){to("east"), has("east", applied, true)}, "unchanged east, delete west NotPlaced", ""},
		"in conflict elsewhere":                     {[]func(*Observed){to("east"), has("east", conflict, false)}, "unchanged east, wait west NotReplaced", "east"},
		"in conflict elsewhere, applied before":     {[]func(*Observed){to("east"), has("east", conflict, true)}, "unchanged east, delete west NotPlaced", ""},
		"not applied elsewhere yet":                 {[]func(*Observed){to("east"), has("east", "", false)}, "unchanged east, wait west NotReplaced", "east"},
		"applied in one of two":                     {[]func(*Observed){to("east", "north"), has("east", applied, true)}, "unchanged east, create north Placed, wait west NotReplaced", "north"},
		"deleted elsewhere":                         {[]func(*Observed){to("east"), has("east", applied, true), func(o *Observed) { o.Works["east"].DeletionTimestamp = &deletionTime }}, "wait east Recreated, wait west NotReplaced", "east"},
		"changed elsewhere":                         {[]func(*Observed){to("east"), has("east", applied, true), changed}, "update east Changed, delete west NotPlaced", ""},
		"changed elsewhere, with divided replicas":  {[]func(*Observed){divided, to("east"), has("east", applied, true), changed}, "update east Changed, wait west NotReplaced", "east"},
		"applied elsewhere, with divided replicas":  {[]func(*Observed){divided, to("east"), has("east", applied, true)}, "unchanged east, delete west NotPlaced", ""},
		"preserved":                                 {[]func(*Observed){to("east"), preserved}, "create east Placed, delete west NotPlaced", ""},
		"restored":                                  {[]func(*Observed){to("east"), restored}, "create east Placed, delete west Undone", ""},
		"being deleted already":                     {[]func(*Observed){to("east"), func(o *Observed) { o.Works["west"].DeletionTimestamp = &deletionTime }}, "create east Placed, delete west NotPlaced", ""},
		"suspended":                                 {[]func(*Observed){to(), suspended(true)}, "update west DispatchingSuspended", ""},
		"suspended before":                          {[]func(*Observed){suspended(true), has("west", applied, true), to()}, "wait west DispatchingSuspended", ""},
		"suspended and preserved":                   {[]func(*Observed){preserved, suspended(true), has("west", applied, true), to()}, "wait west DispatchingSuspended", ""},
		"suspended and restored":                    {[]func(*Observed){to(), suspended(true), restored}, "delete west Undone", ""},
		"no longer suspended":                       {[]func(*Observed){suspended(true), has("west", applied, true), to(), suspended(false)}, "delete west NotPlaced", ""},
		"no longer suspended, and not replaced":     {[]func(*Observed){func(o *Observed) { o.Works["west"].Spec.SuspendDispatching = ptr.To(true) }, to("east")}, "create east Placed, update west NotReplaced", "east"},
		"suspended, and no policy takes it anymore": {[]func(*Observed){to(), suspended(true), unclaimed}, "delete west NotPlaced", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			for _, change := range c.change {
				change(&o)
			}
			d := Decide(o)
			var said, awaited []string
			for _, step := range d.Steps {
				said = append(said, strings.TrimSpace(string(step.Action)+" "+step.Object.Cluster+" "+string(step.Reason.Code)))
				if step.Deletion == nil {
					continue
				}
				awaited = append(awaited, step.Deletion.Awaited...)
				if step.Deletion.Action != model.ActionDelete || d.Kept == nil || d.Kept.Code != step.Reason.Code {
					t.Errorf("later %s, kept: %v", step.Deletion.Action, d.Kept)
				}
				if step.Action == model.ActionUpdate && ptr.Deref(step.Work.Spec.SuspendDispatching, false) != (step.Reason.Code == model.ReasonSuspended) {
					t.Errorf("the Work that stays: %v", step.Work.Spec.SuspendDispatching)
				}
			}
			if got := strings.Join(said, ", "); got != c.want || strings.Join(awaited, ",") != c.awaited || d.Err != nil {
				t.Errorf("got %q, awaited %v, %v, want %q", got, awaited, d.Err, c.want)
			}
		})
	}
}

// A Work that is not created deletes no other. The status of one that is applied does, whatever the operator remembers.
func TestWorkStaysUntilItIsReplaced(t *testing.T) {
	o := observed(t)
	o.Binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
	s := newStage(t, o)
	template := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it"}}
	s.Exists(t, template)
	s.version = template.ResourceVersion
	stays := func(when string) {
		t.Helper()
		if work := s.work(t, "west"); work == nil || work.DeletionTimestamp != nil {
			t.Fatalf("%s, %v is written", when, s.Writes)
		}
	}
	s.On = func(verb string, _ client.Object) error {
		if verb == "create" {
			return apierrors.NewForbidden(works, workName, errors.New("quota"))
		}
		return nil
	}
	if err := s.reconcile(t); !apierrors.IsForbidden(err) {
		t.Fatalf("got %v", err)
	}
	stays("the Work of east is refused")
	s.On = nil
	for range 2 {
		if err := s.reconcile(t); err != nil {
			t.Fatal(err)
		}
		stays("the Work of east is created")
	}
	const says = "applied in 0 of 1 clusters; the placement no longer selects cluster west, and the object there stays until Deployment shop/it is applied in cluster east"
	if got := meta.FindStatusCondition(s.binding(t).Status.Conditions, workv1alpha2.ConditionFullyApplied); got == nil || got.Message != says {
		t.Errorf("got %v", got)
	}
	east := s.work(t, "east")
	applied(east)
	east.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{}}
	if err := s.Status().Update(t.Context(), east); err != nil {
		t.Fatal(err)
	}
	if err := s.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if work := s.work(t, "west"); work != nil && work.DeletionTimestamp == nil {
		t.Errorf("it is applied in east, and %v is written", s.Writes)
	}
}

// Works that are refused are reported together, and hold up no other.
func TestWorksOfOtherClustersAreWrittenAfterARefusal(t *testing.T) {
	o := observed(t)
	o.Binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "north"}, {Name: "south"}}
	o.Works = nil
	s := newStage(t, o)
	s.On = func(verb string, object client.Object) error {
		if verb == "create" && object.GetNamespace() != model.ExecutionNamespace("north") {
			return apierrors.NewRequestEntityTooLargeError("limit is 3145728")
		}
		return nil
	}
	if err := s.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if s.work(t, "north") == nil {
		t.Errorf("got %v", s.Writes)
	}
	status := s.binding(t).Status
	var reasons []string
	for _, item := range status.AggregatedStatus {
		reasons = append(reasons, item.ClusterName+" "+item.Reason)
	}
	if got := strings.Join(reasons, ", "); got != "east FullyAppliedFailed, north Applying, south FullyAppliedFailed" {
		t.Errorf("got %s", got)
	}
	const says = "split the resource; the Works of 1 more clusters are refused: see status.aggregatedStatus"
	if got := meta.FindStatusCondition(status.Conditions, workv1alpha2.ConditionFullyApplied); got == nil || got.Status != metav1.ConditionFalse || !strings.HasSuffix(got.Message, says) {
		t.Errorf("got %v", got)
	}
}
