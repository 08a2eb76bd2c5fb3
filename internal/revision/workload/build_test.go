package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/fairlead"
	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

// The revisions of Istio default, and one of somebody else.
const (
	oldest    = "default-v1-22-0"
	old       = "default-v1-24-0"
	target    = "default-v1-26-0"
	foreign24 = "other-v1-24-0"
)

// generation is what every Deployment of the tests is at, unless somebody else has changed it.
const generation = 3

// epoch is when every test begins; at is so many seconds later.
var epoch = time.Date(2025, 10, 21, 10, 30, 0, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// labelled has labels as kubectl takes them: "istio.io/rev=prod,istio-injection=enabled".
func labelled(text string) map[string]string {
	parsed := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			parsed[key] = value
		}
	}
	return parsed
}

// rev is the label by which a revision or a tag is chosen.
func rev(name string) string { return v1.LabelRevision + "=" + name }

// part is a piece of what a test observes.
type part func(*Observed)

// observed is an Istio that moves workloads from v1.24.0 to v1.26.0, with what a test adds.
func observed(parts ...part) Observed {
	o := Observed{
		Istio: makeIstio("default"),
		Revisions: []v1.IstioRevision{
			makeRevision(oldest, "v1.22.0", "default"), makeRevision(old, "v1.24.0", "default"),
			makeRevision(target, "v1.26.0", "default"), makeRevision(foreign24, "v1.24.0", "other"),
		},
		Target:    Target{Name: target, Version: "v1.26.0"},
		Inventory: inventory.Snapshot{Namespaces: map[string]inventory.Namespace{}, Pods: map[inventory.Owner]inventory.Pods{}},
		Refused:   nil,
	}
	for _, add := range parts {
		add(&o)
	}
	slices.SortStableFunc(o.Inventory.Workloads, func(a, b *inventory.Workload) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return o
}

func makeIstio(name string) *v1.Istio {
	return &v1.Istio{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec: v1.IstioSpec{
			Version: "v1.26.0", Namespace: "istio-system",
			UpdateStrategy: v1.IstioUpdateStrategy{
				Type: v1.UpdateStrategyRevisionBased,
				WorkloadMigration: &v1.WorkloadMigrationConfig{
					Strategy: v1.WorkloadMigrationStrategyBatched, Batched: &v1.BatchedMigrationConfig{},
				},
			},
		},
		Status: v1.IstioStatus{ObservedGeneration: 1, ActiveRevisionName: target},
	}
}

func makeRevision(name, version, istio string) v1.IstioRevision {
	return v1.IstioRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Generation: 1,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1.GroupVersion.String(), Kind: v1.IstioKind, Name: istio,
				UID: types.UID("uid-of-" + istio), Controller: ptr.To(true),
			}},
		},
		Spec: v1.IstioRevisionSpec{Version: version},
		Status: v1.IstioRevisionStatus{Conditions: []metav1.Condition{{
			Type: string(v1.ConditionReady), Status: metav1.ConditionTrue, ObservedGeneration: 1,
		}}},
	}
}

// with changes the Istio.
func with(change func(*v1.Istio)) part { return func(o *Observed) { change(o.Istio) } }

// batched changes how the Istio moves its workloads.
func batched(change func(*v1.BatchedMigrationConfig)) part {
	return with(func(i *v1.Istio) { change(i.Spec.UpdateStrategy.WorkloadMigration.Batched) })
}

func maxVersion(version string) part {
	return batched(func(b *v1.BatchedMigrationConfig) { b.MaxVersion = &version })
}

func batchSize(size int32) part {
	return batched(func(b *v1.BatchedMigrationConfig) { b.BatchSize = &size })
}

var (
	switchedOff = with(func(i *v1.Istio) { i.Spec.UpdateStrategy.WorkloadMigration.Strategy = "" })
	failFast    = batched(func(b *v1.BatchedMigrationConfig) { b.FailurePolicy = v1.FailurePolicyFailFast })
	pausedIstio = annotatedIstio(fairlead.AnnotationPaused, "true")
)

func annotatedIstio(key, value string) part {
	return with(func(i *v1.Istio) { i.Annotations = map[string]string{key: value} })
}

// tells is what the status said before.
func tells(status v1.WorkloadMigrationStatus) part {
	return with(func(i *v1.Istio) { i.Status.WorkloadMigration = &status })
}

// migrating is a migration to the target that began at the epoch, and has not ended.
var migrating = tells(v1.WorkloadMigrationStatus{
	State: v1.WorkloadMigrationStateInProgress, TargetRevision: target, StartTime: ptr.To(metav1.NewTime(epoch)),
})

// migrated is one that ended so many seconds later.
func migrated(state v1.WorkloadMigrationState, seconds int) part {
	return tells(v1.WorkloadMigrationStatus{
		State: state, TargetRevision: target,
		StartTime: ptr.To(metav1.NewTime(epoch)), CompletionTime: ptr.To(metav1.NewTime(at(seconds))),
	})
}

// only leaves no other revisions than these.
func only(names ...string) part {
	return func(o *Observed) {
		o.Revisions = slices.DeleteFunc(o.Revisions, func(r v1.IstioRevision) bool { return !slices.Contains(names, r.Name) })
	}
}

// inPlace is the revision that an Istio had before it was RevisionBased.
func inPlace(o *Observed) {
	o.Revisions = append(o.Revisions, makeRevision("default", "v1.24.0", "default"))
}

// makeTag takes its target as "Istio/default", and where it points to at the moment.
func makeTag(name, to, at string) *v1.IstioRevisionTag {
	kind, of, _ := strings.Cut(to, "/")
	return &v1.IstioRevisionTag{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       v1.IstioRevisionTagSpec{TargetRef: v1.TargetReference{Kind: kind, Name: of}},
		Status:     v1.IstioRevisionTagStatus{IstioRevision: at},
	}
}

func tag(name, to, at string, changes ...func(*v1.IstioRevisionTag)) part {
	return func(o *Observed) {
		made := makeTag(name, to, at)
		for _, change := range changes {
			change(made)
		}
		o.Tags = append(o.Tags, *made)
	}
}

func unreconciled(reason v1.Reason, message string) func(*v1.IstioRevisionTag) {
	return func(t *v1.IstioRevisionTag) {
		t.Status.Conditions = []metav1.Condition{{
			Type: string(v1.ConditionReconciled), Status: metav1.ConditionFalse, Reason: string(reason), Message: message,
		}}
	}
}

func namespace(name, labels string) part {
	return func(o *Observed) {
		o.Inventory.Namespaces[name] = inventory.Namespace{
			Labels: labelled(labels), UID: types.UID("uid-of-" + name), ResourceVersion: "1",
		}
	}
}

// deployment options change a Deployment, and the pods that it has.
type option func(*appsv1.Deployment, inventory.Pods)

// deploy is a Deployment, "shop/cart", of two replicas that became ready long ago.
func deploy(name string, options ...option) part {
	return func(o *Observed) {
		d, pods := makeDeployment(name, options...)
		w := inventory.From(d)
		o.Inventory.Workloads = append(o.Inventory.Workloads, w)
		if len(pods) > 0 {
			o.Inventory.Pods[w.Owner()] = pods
		}
	}
}

func makeDeployment(name string, options ...option) (*appsv1.Deployment, inventory.Pods) {
	in, name, _ := strings.Cut(name, "/")
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: in, Name: name, UID: types.UID("uid-of-" + in + "-" + name), ResourceVersion: "1",
		Generation: generation, CreationTimestamp: metav1.NewTime(at(-9000)), Annotations: map[string]string{},
	}}
	d.Spec.Template.Labels = map[string]string{}
	d.Spec.Template.Annotations = map[string]string{}
	pods := inventory.Pods{}
	for _, change := range append([]option{replicas(2), says("2 of 2 new, 2 ready"), since("NewReplicaSetAvailable", -3600)}, options...) {
		change(d, pods)
	}
	return d, pods
}

// runs gives a Deployment pods of a revision; "" are pods without a sidecar.
func runs(revision string, count int) option {
	return func(_ *appsv1.Deployment, pods inventory.Pods) { pods[revision] = count }
}

func podLabels(labels string) option {
	return func(d *appsv1.Deployment, _ inventory.Pods) { d.Spec.Template.Labels = labelled(labels) }
}

func podAnnotations(annotations string) option {
	return func(d *appsv1.Deployment, _ inventory.Pods) { d.Spec.Template.Annotations = labelled(annotations) }
}

func annotated(key, value string) option {
	return func(d *appsv1.Deployment, _ inventory.Pods) { d.Annotations[key] = value }
}

var skipped = annotated(v1.AnnotationSkipMigration, "true")

func replicas(n int32) option {
	return func(d *appsv1.Deployment, _ inventory.Pods) { d.Spec.Replicas = &n }
}

func rolloutPaused(d *appsv1.Deployment, _ inventory.Pods) { d.Spec.Paused = true }

func created(seconds int) option {
	return func(d *appsv1.Deployment, _ inventory.Pods) { d.CreationTimestamp = metav1.NewTime(at(seconds)) }
}

// says is the status of a Deployment, such as "2 of 3 new, 1 ready": of three pods two are of the new template, and one is
// ready. All that is ready is available, unless it is told: "2 of 2 new, 2 ready, 1 available".
func says(text string) option {
	var updated, all, ready, available int32
	n, err := fmt.Sscanf(strings.ReplaceAll(text, ",", ""), "%d of %d new %d ready %d available", &updated, &all, &ready, &available)
	switch {
	case n == 3:
		available = ready
	case err != nil:
		panic(fmt.Sprintf("%q: %v", text, err))
	}
	return func(d *appsv1.Deployment, _ inventory.Pods) {
		d.Status.ObservedGeneration = d.Generation
		d.Status.Replicas, d.Status.UpdatedReplicas = all, updated
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = ready, available
	}
}

// changed is a Deployment that somebody else has changed since we moved it.
func changed(d *appsv1.Deployment, _ inventory.Pods) {
	d.Generation++
	d.Status.ObservedGeneration = d.Generation
}

// unseen is a Deployment whose controller has yet to see its last change.
func unseen(d *appsv1.Deployment, _ inventory.Pods) { d.Status.ObservedGeneration = d.Generation - 1 }

// since is the reason of a Deployment's condition Progressing, and since when.
func since(reason string, seconds int) option {
	return func(d *appsv1.Deployment, _ inventory.Pods) {
		status := corev1.ConditionTrue
		if reason == "ProgressDeadlineExceeded" {
			status = corev1.ConditionFalse
		}
		d.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, LastUpdateTime: metav1.NewTime(at(seconds)),
		}}
	}
}

// undated is a Deployment without a progress deadline, which has no condition Progressing.
func undated(d *appsv1.Deployment, _ inventory.Pods) { d.Status.Conditions = nil }

// moved is a Deployment with the mark of a move to the target, which is part of the migration that began at the epoch.
func moved(seconds, batch int, changes ...func(*Mark)) option {
	return func(d *appsv1.Deployment, _ inventory.Pods) {
		mark := Mark{
			UID: d.UID, Istio: "default", Target: target, From: old, Action: ActionRestart,
			Run: epoch, Batch: batch, Started: at(seconds), Generation: generation,
		}
		for _, change := range changes {
			change(&mark)
		}
		d.Annotations[v1.AnnotationMigration] = mark.String()
	}
}

// arrived is what a Deployment looks like whose new pods became ready that many seconds after the epoch.
func arrived(seconds int) option {
	return func(d *appsv1.Deployment, pods inventory.Pods) {
		clear(pods)
		pods[target] = int(*d.Spec.Replicas)
		since("NewReplicaSetAvailable", seconds)(d, pods)
	}
}

// halfway is what one looks like in the middle of a rollout to the target.
func halfway(d *appsv1.Deployment, pods inventory.Pods) {
	clear(pods)
	maps.Copy(pods, inventory.Pods{old: 1, target: 2})
	says("2 of 3 new, 2 ready")(d, pods)
	since("ReplicaSetUpdated", 1)(d, pods)
}

// unmanagedWorkload is a workload of another kind, "batch/v1 Job shop/report", with labels of its pods.
func unmanagedWorkload(text, revision string, count int, labels ...string) part {
	var w inventory.Owner
	var name string
	if _, err := fmt.Sscan(text, &w.APIVersion, &w.Kind, &name); err != nil {
		panic(err)
	}
	w.Namespace, w.Name, _ = strings.Cut(name, "/")
	return func(o *Observed) {
		o.Inventory.Pods[w] = inventory.Pods{revision: count}
		if o.Inventory.Samples == nil {
			o.Inventory.Samples = map[inventory.Owner]inventory.Sample{}
		}
		o.Inventory.Samples[w] = inventory.Sample{Name: w.Name + "-5d4f8-x7k2p", Labels: labelled(strings.Join(labels, ","))}
	}
}

// refuses is an API server that does not let an object be written: "shop" or "shop/cart".
func refuses(name, message string) part {
	return func(o *Observed) {
		if o.Refused == nil {
			o.Refused = map[types.UID]Refusal{}
		}
		o.Refused[types.UID("uid-of-"+strings.ReplaceAll(name, "/", "-"))] = Refusal{Reason: passage.Reason{Code: "Refused", Message: message}}
	}
}

func beingDeleted(d *appsv1.Deployment, _ inventory.Pods) {
	d.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
}

func pausedTag(t *v1.IstioRevisionTag) {
	t.Annotations = map[string]string{fairlead.AnnotationPaused: "true"}
}

func deletedTag(t *v1.IstioRevisionTag) { t.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }

func deploymentNamed(namespace, name string) passage.Object {
	return passage.Object{APIVersion: "apps/v1", Kind: kindDeployment, Namespace: namespace, Name: name}
}
