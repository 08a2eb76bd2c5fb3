package workload

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// ofKind makes an app one of another kind.
func ofKind(kind string) func(*app) {
	return func(a *app) { a.kind, a.deadline = kind, 0 }
}

// onDelete has a DaemonSet leave its pods to its owner.
func onDelete(a *app) { a.onDelete = true }

// evict is the deletion of pods that are not ready.
func (a *app) evict() {
	for i := len(a.pods) - 1; i >= 0; i-- {
		if a.ready(a.pods[i:i+1]) == 0 {
			a.destroy(i)
		}
	}
	a.acts = a.now.Add(time.Second)
}

// object is an app as the API server has it.
func (a *app) object() client.Object {
	object := objectOfKind(a.kind, a.Deployment)
	if d, ok := object.(*appsv1.DaemonSet); ok && a.onDelete {
		onDeleteDaemon(d)
	}
	return object
}

func objectOfKind(kind string, d *appsv1.Deployment) client.Object {
	desired := ptr.Deref(d.Spec.Replicas, 1)
	switch kind {
	case kindStatefulSet:
		return &appsv1.StatefulSet{
			ObjectMeta: *d.ObjectMeta.DeepCopy(),
			Spec:       appsv1.StatefulSetSpec{Replicas: &desired, Template: *d.Spec.Template.DeepCopy()},
			Status: appsv1.StatefulSetStatus{
				ObservedGeneration: d.Status.ObservedGeneration, Replicas: d.Status.Replicas, UpdatedReplicas: d.Status.UpdatedReplicas,
				ReadyReplicas: d.Status.ReadyReplicas, AvailableReplicas: d.Status.AvailableReplicas,
			},
		}
	case kindDaemonSet:
		return &appsv1.DaemonSet{
			ObjectMeta: *d.ObjectMeta.DeepCopy(),
			Spec:       appsv1.DaemonSetSpec{Template: *d.Spec.Template.DeepCopy()},
			Status: appsv1.DaemonSetStatus{
				ObservedGeneration: d.Status.ObservedGeneration, DesiredNumberScheduled: desired,
				CurrentNumberScheduled: d.Status.Replicas, UpdatedNumberScheduled: d.Status.UpdatedReplicas,
				NumberReady: d.Status.ReadyReplicas, NumberAvailable: d.Status.AvailableReplicas,
			},
		}
	}
	return d
}

// replaceInPlace is what the controllers of StatefulSets and DaemonSets do: an old pod goes before its successor comes, one at
// a time. That of a StatefulSet waits for a pod that is not ready, also if the pod is an old one.
func (a *app) replaceInPlace() {
	template := a.template()
	progress := false
	for {
		stale, failing := -1, -1
		for i, p := range a.pods {
			if p.template != template {
				stale = i
				if a.ready([]appPod{p}) == 0 {
					failing = i
				}
			}
		}
		switch {
		case len(a.pods) > a.desired():
			a.destroy(len(a.pods) - 1)
		case len(a.pods) < a.desired():
			a.create(a.now)
		case failing >= 0 && a.kind == kindDaemonSet:
			a.destroy(failing)
		case stale >= 0 && a.ready(a.pods) == a.desired():
			a.destroy(stale)
		default:
			a.conclude(progress, template)
			return
		}
		progress = true
	}
}

// set is a workload of another kind, made of what a Deployment has in common with it.
func set(kind, name string, options ...any) part {
	return func(o *Observed) {
		w, pods := makeSet(kind, name, options...)
		o.Inventory.Workloads = append(o.Inventory.Workloads, w)
		if len(pods) > 0 {
			o.Inventory.Pods[w.Owner()] = pods
		}
	}
}

// makeSet takes options of Deployments, and functions that change a StatefulSet or a DaemonSet.
func makeSet(kind, name string, options ...any) (*inventory.Workload, inventory.Pods) {
	var common []option
	for _, o := range options {
		switch o := o.(type) {
		case option:
			common = append(common, o)
		case func(*appsv1.Deployment, inventory.Pods):
			common = append(common, o)
		}
	}
	d, pods := makeDeployment(name, common...)
	object := objectOfKind(kind, d)
	for _, o := range options {
		switch change := o.(type) {
		case func(*appsv1.StatefulSet):
			change(object.(*appsv1.StatefulSet))
		case func(*appsv1.DaemonSet):
			change(object.(*appsv1.DaemonSet))
		}
	}
	return inventory.From(object), pods
}

func kinds(kinds ...v1.WorkloadKind) part {
	return batched(func(b *v1.BatchedMigrationConfig) { b.WorkloadKinds = kinds })
}

var (
	allKinds  = []v1.WorkloadKind{v1.WorkloadKindDeployment, v1.WorkloadKindStatefulSet, v1.WorkloadKindDaemonSet}
	everyKind = kinds(allKinds...)
)

func partition(n int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
			Type:          appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &n},
		}
	}
}

func onDeleteSet(s *appsv1.StatefulSet) {
	s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
}

func onDeleteDaemon(d *appsv1.DaemonSet) {
	d.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
}

func parallel(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }

// TestSettleOfKinds has how far a StatefulSet or a DaemonSet with three pods is that was moved at the epoch. The time is a
// minute later unless it is told.
func TestSettleOfKinds(t *testing.T) {
	const timeout = 5 * time.Minute
	stuck := "; a StatefulSet replaces no pod while one is not ready: remove the cause, and delete that pod"
	cases := map[string]struct {
		kind    string
		options []any
		mark    func(*Mark)
		now     int
		want    string
	}{
		"StatefulSet, before its controller has seen it": {
			kindStatefulSet, []any{runs(old, 3), says("3 of 3 new, 3 ready"), unseen}, nil, 60, "Running 0/3 ready",
		},
		"StatefulSet, no new pod yet": {
			kindStatefulSet, []any{runs(old, 3), says("0 of 3 new, 3 ready")}, nil, 60, "Running 0/3 ready",
		},
		"StatefulSet, an old pod is gone": {
			kindStatefulSet, []any{runs(old, 2), says("0 of 2 new, 2 ready")}, nil, 60, "Running 0/3 ready",
		},
		"StatefulSet, one of three": {
			kindStatefulSet, []any{runs(old, 2), runs(target, 1), says("1 of 3 new, 3 ready")}, nil, 60, "Running 1/3 ready",
		},
		"StatefulSet, the last one is ready and not available": {
			kindStatefulSet, []any{runs(target, 3), says("3 of 3 new, 3 ready, 2 available")}, nil, 60, "Running 3/3 ready",
		},
		"StatefulSet, done, which it does not date": {
			kindStatefulSet, []any{runs(target, 3), says("3 of 3 new, 3 ready")}, nil, 60, "Done 3/3 ready at 1m0s, to be written",
		},
		"StatefulSet, done as recorded, and then a pod crashes": {
			kindStatefulSet, []any{runs(target, 3), says("3 of 3 new, 2 ready")}, func(m *Mark) { m.Done = at(30) }, 900, "Done 2/3 ready at 30s",
		},
		"StatefulSet, done, and its pods are not seen yet": {
			kindStatefulSet, []any{runs(old, 1), runs(target, 2), says("3 of 3 new, 3 ready")}, nil, 60, "Running 3/3 ready",
		},
		"StatefulSet, not ready in time": {
			kindStatefulSet, []any{runs(old, 2), runs(target, 1), says("1 of 3 new, 2 ready")}, nil, 300,
			"Failed 0/3 ready at 5m0s, to be written: ReadinessTimeout: Readiness timeout exceeded after 5m0s" + stuck,
		},
		"StatefulSet in parallel, not ready in time": {
			kindStatefulSet, []any{runs(old, 2), runs(target, 1), says("1 of 3 new, 2 ready"), parallel}, nil, 300,
			"Failed 0/3 ready at 5m0s, to be written: ReadinessTimeout: Readiness timeout exceeded after 5m0s",
		},
		"StatefulSet, slow and healthy": {
			kindStatefulSet, []any{runs(old, 2), runs(target, 1), says("1 of 3 new, 3 ready")}, nil, 300,
			"Failed 1/3 ready at 5m0s, to be written: ReadinessTimeout: Readiness timeout exceeded after 5m0s",
		},
		"StatefulSet, wrong revision": {
			kindStatefulSet, []any{runs(old, 3), says("3 of 3 new, 3 ready")}, nil, 300,
			"Failed 3/3 ready at 5m0s, to be written: WrongRevision: its pods came up with default-v1-24-0 instead of default-v1-26-0",
		},
		"StatefulSet, scaled to zero": {
			kindStatefulSet, []any{replicas(0), says("0 of 0 new, 0 ready")}, nil, 60, "Done 0/0 ready at 1m0s, to be written",
		},
		"DaemonSet, before its controller has seen it": {
			kindDaemonSet, []any{replicas(3), runs(old, 3), says("3 of 3 new, 3 ready"), unseen}, nil, 60, "Running 0/3 ready",
		},
		"DaemonSet, one of three nodes": {
			kindDaemonSet, []any{replicas(3), runs(old, 2), runs(target, 1), says("1 of 3 new, 3 ready")}, nil, 60, "Running 1/3 ready",
		},
		"DaemonSet, a node without a pod": {
			kindDaemonSet, []any{replicas(3), runs(target, 2), says("2 of 2 new, 2 ready")}, nil, 60, "Running 2/3 ready",
		},
		"DaemonSet, done, which it does not date": {
			kindDaemonSet, []any{replicas(3), runs(target, 3), says("3 of 3 new, 3 ready")}, nil, 60, "Done 3/3 ready at 1m0s, to be written",
		},
		"DaemonSet, not available yet": {
			kindDaemonSet, []any{replicas(3), runs(target, 3), says("3 of 3 new, 3 ready, 1 available")}, nil, 60, "Running 3/3 ready",
		},
		"DaemonSet, done, and a node came since": {
			kindDaemonSet, []any{replicas(4), runs(target, 3), says("3 of 3 new, 3 ready")}, func(m *Mark) { m.Done = at(30) }, 900, "Done 3/4 ready at 30s",
		},
		"DaemonSet, not ready in time": {
			kindDaemonSet, []any{replicas(3), runs(old, 2), runs(target, 1), says("1 of 3 new, 2 ready")}, nil, 300,
			"Failed 0/3 ready at 5m0s, to be written: ReadinessTimeout: Readiness timeout exceeded after 5m0s",
		},
		"DaemonSet, no nodes": {
			kindDaemonSet, []any{replicas(0), says("0 of 0 new, 0 ready")}, nil, 60, "Done 0/0 ready at 1m0s, to be written",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, pods := makeSet(tc.kind, "shop/db", append([]any{replicas(3)}, tc.options...)...)
			mark := Mark{
				Istio: "default", Target: target, From: old, Action: ActionRestart,
				Run: epoch, Batch: 1, Started: epoch, Generation: generation,
			}
			if tc.mark != nil {
				tc.mark(&mark)
			}
			if got := tellOutcome(outcomeOf(w, pods, mark, timeout, at(tc.now)), mark.Started.Add(timeout)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestKindsThatMove has what the plan says of StatefulSets and DaemonSets.
func TestKindsThatMove(t *testing.T) {
	shop := namespace("shop", rev(target))
	waiting := []any{runs(old, 2), runs(target, 1), replicas(3), says("1 of 3 new, 3 ready"), moved(0, 1)}
	cases := map[string]struct {
		parts []part
		want  []string
	}{
		"restart": {
			[]part{everyKind, shop, set(kindStatefulSet, "shop/db", runs(old, 2)), set(kindDaemonSet, "shop/agent", runs(old, 2)), deploy("shop/cart", runs(old, 2))},
			[]string{
				`Pending restart DaemonSet shop/agent from "default-v1-24-0", OnOldRevision: its pods still run the old revision`,
				`Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: its pods still run the old revision`,
				`Pending restart StatefulSet shop/db from "default-v1-24-0", OnOldRevision: its pods still run the old revision`,
			},
		},
		"relabel": {
			[]part{everyKind, namespace("shop", ""), set(kindStatefulSet, "shop/db", runs(old, 2), podLabels(rev(old)))},
			[]string{`Pending relabel StatefulSet shop/db from "default-v1-24-0", OnOldRevision: selected by the pod label`},
		},
		"not asked for": {
			[]part{shop, set(kindStatefulSet, "shop/db", runs(old, 2)), set(kindDaemonSet, "shop/agent", runs(old, 2))},
			[]string{
				`Skipped stay DaemonSet shop/agent from "default-v1-24-0", KindNotMoved: DaemonSet is not in batched.workloadKinds; its next restart picks up the revision`,
				`Skipped stay StatefulSet shop/db from "default-v1-24-0", KindNotMoved: StatefulSet is not in batched.workloadKinds; its next restart picks up the revision`,
			},
		},
		"Deployments not asked for": {
			[]part{kinds(v1.WorkloadKindStatefulSet), shop, set(kindStatefulSet, "shop/db", runs(old, 2)), deploy("shop/cart", runs(old, 2))},
			[]string{
				`Pending restart StatefulSet shop/db from "default-v1-24-0", OnOldRevision: its pods still run the old revision`,
				`Skipped stay Deployment shop/cart from "default-v1-24-0", KindNotMoved: Deployment is not in batched.workloadKinds; its next restart picks up the revision`,
			},
		},
		"OnDelete": {
			[]part{everyKind, shop, set(kindStatefulSet, "shop/db", runs(old, 2), onDeleteSet), set(kindDaemonSet, "shop/agent", runs(old, 2), onDeleteDaemon)},
			[]string{
				`Skipped stay DaemonSet shop/agent from "default-v1-24-0", OnDelete: spec.updateStrategy.type is OnDelete; delete its pods, and new ones start on default-v1-26-0`,
				`Skipped stay StatefulSet shop/db from "default-v1-24-0", OnDelete: spec.updateStrategy.type is OnDelete; delete its pods, and new ones start on default-v1-26-0`,
			},
		},
		"OnDelete with a label of its own": {
			[]part{everyKind, namespace("shop", ""), set(kindStatefulSet, "shop/db", runs(old, 2), podLabels(rev(old)), onDeleteSet)},
			[]string{`Skipped stay StatefulSet shop/db from "default-v1-24-0", OnDelete: spec.updateStrategy.type is OnDelete; set label istio.io/rev of its pod template to default-v1-26-0, and delete its pods`},
		},
		"OnDelete, and its pods were deleted": {
			[]part{everyKind, namespace("shop", rev(old)), set(kindStatefulSet, "shop/db", runs(target, 2), onDeleteSet)},
			[]string{moveNamespace, `Done restart StatefulSet shop/db from "default-v1-24-0", RunsOnTarget: its pods already run on default-v1-26-0`},
		},
		"OnDelete without pods, and a label of its own": {
			[]part{everyKind, namespace("shop", ""), set(kindStatefulSet, "shop/db", replicas(0), says("0 of 0 new, 0 ready"), podLabels(rev(old)), onDeleteSet)},
			[]string{`Pending relabel StatefulSet shop/db from "default-v1-24-0", NamesOldRevision: selected by the pod label`},
		},
		"a partition": {
			[]part{everyKind, shop, set(kindStatefulSet, "shop/db", runs(old, 2), partition(1))},
			[]string{`Skipped stay StatefulSet shop/db from "default-v1-24-0", Partition: spec.updateStrategy.rollingUpdate.partition is 1, and keeps pods below that number from being replaced; set it to 0`},
		},
		"a partition of 0": {
			[]part{everyKind, shop, set(kindStatefulSet, "shop/db", runs(old, 2), partition(0))},
			[]string{`Pending restart StatefulSet shop/db from "default-v1-24-0", OnOldRevision: its pods still run the old revision`},
		},
		"a partition that was set during the move": {
			[]part{everyKind, migrating, shop, set(kindStatefulSet, "shop/db", append(waiting, partition(2))...)},
			[]string{`Skipped stay StatefulSet shop/db from "default-v1-24-0", Partition: spec.updateStrategy.rollingUpdate.partition is 2, and keeps pods below that number from being replaced; set it to 0`},
		},
		"a partition that was set during the move, with pods still to be replaced": {
			[]part{everyKind, migrating, shop, set(kindStatefulSet, "shop/db", append(waiting, partition(1))...)},
			[]string{`Running restart StatefulSet shop/db from "default-v1-24-0", Restarting: its pods are being replaced`},
		},
		"OnDelete that was set during the move": {
			[]part{everyKind, migrating, shop, set(kindStatefulSet, "shop/db", append(waiting, onDeleteSet)...)},
			[]string{`Skipped stay StatefulSet shop/db from "default-v1-24-0", OnDelete: spec.updateStrategy.type is OnDelete; delete its pods, and new ones start on default-v1-26-0`},
		},
		"left out during the move": {
			[]part{migrating, shop, set(kindStatefulSet, "shop/db", waiting...)},
			[]string{`Running restart StatefulSet shop/db from "default-v1-24-0", Restarting: its pods are being replaced`},
		},
		"left out after it failed": {
			[]part{migrating, shop, set(kindStatefulSet, "shop/db", append(waiting, moved(0, 1, gaveUp))...)},
			[]string{`Skipped stay StatefulSet shop/db from "default-v1-24-0", KindNotMoved: StatefulSet is not in batched.workloadKinds; its next restart picks up the revision`},
		},
		"skipped by its annotation": {
			[]part{everyKind, shop, set(kindStatefulSet, "shop/db", runs(old, 2), skipped)},
			[]string{`Skipped stay StatefulSet shop/db from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration is set, but new pods of it start on the target revision`},
		},
		"an annotation that cannot be read": {
			[]part{everyKind, shop, set(kindDaemonSet, "shop/agent", runs(old, 2), annotated(v1.AnnotationMigrationBatch, "first"))},
			[]string{`Failed restart DaemonSet shop/agent from "default-v1-24-0", InvalidAnnotation: annotation sailoperator.io/migration-batch of DaemonSet shop/agent is "first", and should be a whole number from -1000 to 1000`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reported(Plan(observed(tc.parts...), at(60)))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// A mark that only follows a rollout to its end must not wait for a generation that never comes.
func TestGenerationOfMarks(t *testing.T) {
	for kind, want := range map[string]int64{kindDeployment: generation + 1, kindStatefulSet: generation, kindDaemonSet: generation} {
		o := observed(everyKind, migrating, namespace("shop", rev(target)), set(kind, "shop/db", runs(target, 2)))
		seen := o.Inventory.Workloads[0]
		step := newPlanner(o, at(60)).newStep(seen)
		step.Action = ActionContinue
		body := movePatch(o, seen, *step, epoch, at(60)).body
		moved := *seen
		moved.Annotations = map[string]string{
			v1.AnnotationMigration: body["metadata"].(map[string]any)["annotations"].(map[string]any)[v1.AnnotationMigration].(string),
		}
		if got := markOf(&moved).Generation; got != want {
			t.Errorf("%s: %d, want %d", kind, got, want)
		}
	}
}

// The totals count what is moved, of whatever kind.
func TestTotalsOfKinds(t *testing.T) {
	parts := []part{
		migrating, namespace("shop", rev(target)), deploy("shop/cart", runs(old, 2)),
		set(kindStatefulSet, "shop/db", runs(old, 2)), set(kindDaemonSet, "shop/agent", runs(old, 2)),
	}
	plain, all := Plan(observed(parts...), epoch), Plan(observed(append(parts, everyKind)...), epoch)
	if plain.Counts().Total != 1 || plain.Noun() != "Deployment" {
		t.Errorf("by default %+v of kind %s", plain.Counts(), plain.Noun())
	}
	if all.Counts().Total != 3 || all.Noun() != "workload" {
		t.Errorf("with all kinds %+v of kind %s", all.Counts(), all.Noun())
	}
	if want := []string{kindDeployment, kindStatefulSet, kindDaemonSet}; !slices.Equal(all.Moves, want) {
		t.Errorf("moves %v, want %v", all.Moves, want)
	}
}
