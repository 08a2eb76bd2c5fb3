// Package inventory knows the workloads of a cluster: its Deployments, and which revision the pods of every workload run.
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

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// Workload names the controller of pods, such as a Deployment or a StatefulSet, or the pod itself.
type Workload struct {
	APIVersion, Kind, Namespace, Name string
}

// DeploymentOf is the Workload that a Deployment is.
func DeploymentOf(d *appsv1.Deployment) Workload {
	return Workload{appsv1.SchemeGroupVersion.String(), kindDeployment, d.Namespace, d.Name}
}

// Pods counts the pods of a workload by the revision that injected them; those without a sidecar are under "". Pods
// that are being deleted do not count.
type Pods map[string]int

// Snapshot is the inventory at one moment. It is shared and must not be changed.
type Snapshot struct {
	// Namespaces has the labels that select revisions, by namespace.
	Namespaces map[string]Namespace
	// Deployments are in the order of their namespaces and names.
	Deployments []*appsv1.Deployment
	Pods        map[Workload]Pods
}

// Namespace has the labels that select the revision of its pods.
type Namespace struct {
	Labels          map[string]string
	UID             types.UID
	ResourceVersion string
}

// Tracker keeps the inventory up to date with events.
type Tracker struct {
	mu          sync.Mutex
	namespaces  map[string]Namespace
	deployments map[types.NamespacedName]*appsv1.Deployment
	pods        map[types.NamespacedName]podOwner
	podCounts   map[Workload]Pods
	// sorted is nil when a Deployment came or went since.
	sorted  []types.NamespacedName
	changed func()
}

// podOwner is the workload of a pod, and the revision that injected it.
type podOwner struct {
	workload Workload
	revision string
}

// New makes an empty Tracker that calls changed, which must not block, after each change that a Snapshot would show.
func New(changed func()) *Tracker {
	return &Tracker{
		namespaces:  map[string]Namespace{},
		deployments: map[types.NamespacedName]*appsv1.Deployment{},
		pods:        map[types.NamespacedName]podOwner{},
		podCounts:   map[Workload]Pods{},
		changed:     changed,
	}
}

// Snapshot is the current inventory.
func (t *Tracker) Snapshot() Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sorted == nil {
		t.sorted = slices.AppendSeq(make([]types.NamespacedName, 0, len(t.deployments)), maps.Keys(t.deployments))
		slices.SortFunc(t.sorted, func(a, b types.NamespacedName) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
	}
	deployments := make([]*appsv1.Deployment, 0, len(t.sorted))
	for _, name := range t.sorted {
		deployments = append(deployments, t.deployments[name])
	}
	return Snapshot{Namespaces: maps.Clone(t.namespaces), Deployments: deployments, Pods: maps.Clone(t.podCounts)}
}

// ObserveWrite applies the result of our own write ahead of its event: a plan made without it would write again.
func (t *Tracker) ObserveWrite(d *appsv1.Deployment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.deployments[nameOf(d)]; known != nil && known.UID == d.UID {
		t.observeDeployment(trimDeployment(d))
	}
}

// ObserveNamespaceWrite is ObserveWrite for a namespace.
func (t *Tracker) ObserveNamespaceWrite(o metav1.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, found := t.namespaces[o.GetName()]; found && known.UID == o.GetUID() {
		t.observeNamespace(o)
	}
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// observeDeployment stores a trimmed Deployment, unless a newer one is known. It keeps the object of the cache, without a
// copy.
func (t *Tracker) observeDeployment(now *appsv1.Deployment) {
	name := nameOf(now)
	known := t.deployments[name]
	if known != nil && known.UID == now.UID && !isNewer(now.ResourceVersion, known.ResourceVersion) {
		return
	}
	if known == nil {
		t.sorted = nil
	}
	t.deployments[name] = now
	if known == nil || !equalExceptVersion(known, now) {
		t.changed()
	}
}

func (t *Tracker) observeNamespace(o metav1.Object) {
	known, found := t.namespaces[o.GetName()]
	if found && known.UID == o.GetUID() && !isNewer(o.GetResourceVersion(), known.ResourceVersion) {
		return
	}
	now := Namespace{Labels: usage.Labels(o.GetLabels()), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
	t.namespaces[o.GetName()] = now
	if !found || !maps.Equal(known.Labels, now.Labels) {
		t.changed()
	}
}

func (t *Tracker) observePod(o metav1.Object) {
	now := podOwner{workload: workloadOf(o), revision: o.GetAnnotations()[v1.AnnotationRevision]}
	if o.GetDeletionTimestamp() != nil {
		now = podOwner{}
	}
	t.setPod(nameOf(o), now)
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
	t.changed()
}

// count replaces the counts instead of changing them: a Snapshot may share them.
func (t *Tracker) count(m podOwner, by int) {
	tally := maps.Clone(t.podCounts[m.workload])
	if tally == nil {
		tally = Pods{}
	}
	tally[m.revision] += by
	if tally[m.revision] == 0 {
		delete(tally, m.revision)
	}
	if len(tally) == 0 {
		delete(t.podCounts, m.workload)
		return
	}
	t.podCounts[m.workload] = tally
}

func workloadOf(pod metav1.Object) Workload {
	if owner := usage.WorkloadOf(pod); owner != nil {
		return Workload{owner.APIVersion, owner.Kind, pod.GetNamespace(), owner.Name}
	}
	return Workload{"v1", kindPod, pod.GetNamespace(), pod.GetName()}
}

// isNewer compares resource versions. Ones that cannot be compared count as newer, as events come in order.
func isNewer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
