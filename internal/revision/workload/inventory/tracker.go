// Package inventory knows the workloads of a cluster: those that can be moved, and which revision the pods of all of them run.
//
// A Tracker follows the events of caches that hold no more than is read here, for the operator and for `fairlead watch`. List
// fills one from the API server, for a command that runs once. Both give the same Snapshot.
package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Owner names the controller of pods, such as a Deployment or a StatefulSet, or the pod itself.
type Owner struct {
	APIVersion, Kind, Namespace, Name string
}

// Pods counts the pods of a workload by the revision that injected them; those without a sidecar are under "". Pods
// that are being deleted do not count.
type Pods map[string]int

// Snapshot is the inventory at one moment. It is shared and must not be changed.
type Snapshot struct {
	// Namespaces has the labels that select revisions, by namespace.
	Namespaces map[string]Namespace
	// Workloads are in the order of their namespaces, kinds and names.
	Workloads []*Workload
	Pods      map[Owner]Pods
	// Samples has one pod of each owner.
	Samples map[Owner]Sample
	// CronJobs has the labels of their pod templates that select revisions.
	CronJobs map[types.NamespacedName]map[string]string
}

// Sample is the pod of an owner that was seen last.
type Sample struct {
	Name string
	// Labels are those that select revisions.
	Labels map[string]string
}

// Find is a workload by its kind and name, or nil.
func (s Snapshot) Find(kind, namespace, name string) *Workload {
	wanted := key{types.NamespacedName{Namespace: namespace, Name: name}, kind}
	i, found := slices.BinarySearchFunc(s.Workloads, wanted, func(w *Workload, wanted key) int { return compareKeys(w.key(), wanted) })
	if !found {
		return nil
	}
	return s.Workloads[i]
}

func compareKeys(a, b key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.kind, b.kind), strings.Compare(a.Name, b.Name))
}

// Namespace has the labels that select the revision of its pods, and the annotation by which it is left alone.
type Namespace struct {
	Labels, Annotations map[string]string
	UID                 types.UID
	ResourceVersion     string
}

// Tracker keeps the inventory up to date with events.
type Tracker struct {
	mu         sync.Mutex
	namespaces map[string]Namespace
	workloads  map[key]*Workload
	pods       map[types.NamespacedName]podOwner
	podCounts  map[Owner]Pods
	samples    map[Owner]Sample
	cronJobs   map[types.NamespacedName]map[string]string
	// sorted is nil when a workload came or went since.
	sorted []key
	// awaited has the workloads whose rollouts a group of them waits for, by group.
	awaited map[string]map[key]bool
	changed func(Change)
}

// Change is what a change may mean for a plan.
type Change uint8

const (
	// Progress is pods that come and go while a rollout goes on, the end of one while others are awaited, or a write of our own,
	// whose author knows of it.
	Progress Change = iota
	// Decisive is any other change: a workload that has finished a rollout, a new label, a pod that has gone for good.
	Decisive
)

// podOwner is the owner of a pod, and the revision that injected it.
type podOwner struct {
	owner    Owner
	revision string
}

// New makes an empty Tracker that calls changed, which must not block, after each change that a Snapshot would show.
func New(changed func(Change)) *Tracker {
	return &Tracker{
		namespaces: map[string]Namespace{},
		workloads:  map[key]*Workload{},
		pods:       map[types.NamespacedName]podOwner{},
		podCounts:  map[Owner]Pods{},
		samples:    map[Owner]Sample{},
		cronJobs:   map[types.NamespacedName]map[string]string{},
		awaited:    map[string]map[key]bool{},
		changed:    changed,
	}
}

// Snapshot is the current inventory.
func (t *Tracker) Snapshot() Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sorted == nil {
		t.sorted = slices.AppendSeq(make([]key, 0, len(t.workloads)), maps.Keys(t.workloads))
		slices.SortFunc(t.sorted, compareKeys)
	}
	workloads := make([]*Workload, 0, len(t.sorted))
	for _, k := range t.sorted {
		workloads = append(workloads, t.workloads[k])
	}
	return Snapshot{
		Namespaces: maps.Clone(t.namespaces), Workloads: workloads, Pods: maps.Clone(t.podCounts), Samples: maps.Clone(t.samples),
		CronJobs: maps.Clone(t.cronJobs),
	}
}

// ObserveWrite applies the result of our own write ahead of its event: a plan made without it would write again.
func (t *Tracker) ObserveWrite(object client.Object) {
	w := From(object)
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.workloads[w.key()]; known != nil && known.UID == w.UID {
		t.storeWorkload(w, func(*Workload) Change { return Progress })
	}
}

// ObserveNamespaceWrite is ObserveWrite for a namespace.
func (t *Tracker) ObserveNamespaceWrite(o metav1.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, found := t.namespaces[o.GetName()]; found && known.UID == o.GetUID() {
		t.storeNamespace(o, Progress)
	}
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (t *Tracker) observeWorkload(now *Workload) {
	t.storeWorkload(now, func(known *Workload) Change {
		onlyRollout := known.isRollingOut() && equalExceptRollout(known, now) && !now.hasGivenUp()
		if onlyRollout && now.isRollingOut() || t.stopAwaiting(now.key()) && onlyRollout {
			return Progress
		}
		return Decisive
	})
}

// storeWorkload stores a workload, unless a newer one is known. It asks what a change of a known one means.
func (t *Tracker) storeWorkload(now *Workload, changeOf func(known *Workload) Change) {
	k := now.key()
	known := t.workloads[k]
	if known != nil && known.UID == now.UID && !isNewer(now.ResourceVersion, known.ResourceVersion) {
		return
	}
	t.workloads[k] = now
	switch {
	case known == nil:
		t.sorted = nil
		t.changed(Decisive)
	case !equality.Semantic.DeepEqual(known.Rollout, now.Rollout) || !equalExceptRollout(known, now):
		t.changed(changeOf(known))
	}
}

func (t *Tracker) removeWorkload(k key) {
	if t.workloads[k] == nil {
		return
	}
	delete(t.workloads, k)
	t.stopAwaiting(k)
	t.sorted = nil
	t.changed(Decisive)
}

func (t *Tracker) observeCronJob(o metav1.Object) {
	name, now := nameOf(o), usage.TemplateLabels(o)
	before, found := t.cronJobs[name]
	if t.cronJobs[name] = now; !found || !maps.Equal(before, now) {
		t.changed(Decisive)
	}
}

func (t *Tracker) removeCronJob(name types.NamespacedName) {
	delete(t.cronJobs, name)
	t.changed(Decisive)
}

func (t *Tracker) observeNamespace(o metav1.Object) { t.storeNamespace(o, Decisive) }

func (t *Tracker) storeNamespace(o metav1.Object, change Change) {
	known, found := t.namespaces[o.GetName()]
	if found && known.UID == o.GetUID() && !isNewer(o.GetResourceVersion(), known.ResourceVersion) {
		return
	}
	now := Namespace{
		Labels: usage.Labels(o.GetLabels()), Annotations: pick(o.GetAnnotations(), v1.AnnotationSkipMigration),
		UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
	}
	t.namespaces[o.GetName()] = now
	if !found || !maps.Equal(known.Labels, now.Labels) || !maps.Equal(known.Annotations, now.Annotations) {
		t.changed(change)
	}
}

func (t *Tracker) observePod(o metav1.Object) {
	now := podOwner{owner: ownerOf(o), revision: o.GetAnnotations()[v1.AnnotationRevision]}
	if o.GetDeletionTimestamp() != nil {
		now = podOwner{}
	}
	t.setPod(nameOf(o), now)
	if now != (podOwner{}) {
		t.setSample(now.owner, Sample{o.GetName(), usage.Labels(o.GetLabels())})
	}
}

func (t *Tracker) setSample(owner Owner, now Sample) {
	if before := t.samples[owner]; !maps.Equal(before.Labels, now.Labels) {
		t.changed(t.podChange(owner))
	}
	t.samples[owner] = now
}

func (t *Tracker) setPod(name types.NamespacedName, now podOwner) {
	before := t.pods[name]
	if before == now {
		return
	}
	if before != (podOwner{}) {
		t.count(before, -1)
		delete(t.pods, name)
	}
	if now != (podOwner{}) {
		t.count(now, +1)
		t.pods[name] = now
	}
	t.changed(min(t.podChange(before.owner), t.podChange(now.owner)))
}

// podChange is what a pod that comes or goes means: nothing yet while its owner is replacing pods.
func (t *Tracker) podChange(owner Owner) Change {
	w := t.workloads[owner.key()]
	if w != nil && w.isRollingOut() {
		return Progress
	}
	return Decisive
}

// count replaces the counts instead of changing them: a Snapshot may share them.
func (t *Tracker) count(m podOwner, by int) {
	tally := maps.Clone(t.podCounts[m.owner])
	if tally == nil {
		tally = Pods{}
	}
	tally[m.revision] += by
	if tally[m.revision] == 0 {
		delete(tally, m.revision)
	}
	if len(tally) == 0 {
		delete(t.podCounts, m.owner)
		delete(t.samples, m.owner)
		return
	}
	t.podCounts[m.owner] = tally
}

func ownerOf(pod metav1.Object) Owner {
	if owner := usage.WorkloadOf(pod); owner != nil {
		return Owner{owner.APIVersion, owner.Kind, pod.GetNamespace(), owner.Name}
	}
	return Owner{"v1", kindPod, pod.GetNamespace(), pod.GetName()}
}

// isNewer compares resource versions. Ones that cannot be compared count as newer, as events come in order.
func isNewer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
