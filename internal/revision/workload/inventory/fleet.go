// Package inventory knows the workloads of a cluster: its Deployments, and which revision the pods of every workload run.
//
// A Fleet is fed by the events of caches that hold no more than is read here, for the operator and for `fairlead watch`,
// or by one survey of the API server, for a command that looks once. Both give the same picture.
package inventory

import (
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

// Workload names what pods belong to: a Deployment, a StatefulSet or whatever else controls them, or the pod itself.
type Workload struct {
	APIVersion, Kind, Namespace, Name string
}

// DeploymentOf is the Workload that a Deployment is.
func DeploymentOf(d *appsv1.Deployment) Workload {
	return Workload{appsv1.SchemeGroupVersion.String(), kindDeployment, d.Namespace, d.Name}
}

// Pods counts the pods of a workload by the revision that injected them; those without a sidecar are under "". What is
// being deleted does not count.
type Pods map[string]int

// Picture is a fleet as it was at one moment. It is shared, and must not be written to.
type Picture struct {
	// Namespaces has the labels of each that says something about revisions.
	Namespaces map[string]Namespace
	// Deployments are in the order of their namespaces and names.
	Deployments []*appsv1.Deployment
	Pods        map[Workload]Pods
}

// Namespace is what says which revision the pods in it get.
type Namespace struct {
	Labels          map[string]string
	UID             types.UID
	ResourceVersion string
}

// Fleet follows what the events of a cluster tell.
type Fleet struct {
	mu          sync.Mutex
	namespaces  map[string]Namespace
	deployments map[types.NamespacedName]*appsv1.Deployment
	pods        map[types.NamespacedName]member
	tallies     map[Workload]Pods
	// sorted is nil when a Deployment came or went since.
	sorted  []types.NamespacedName
	changed func()
}

// member is what a pod counts as.
type member struct {
	workload Workload
	revision string
}

// New makes an empty fleet that calls changed, which must not block, after each change that a Picture would show.
func New(changed func()) *Fleet {
	return &Fleet{
		namespaces:  map[string]Namespace{},
		deployments: map[types.NamespacedName]*appsv1.Deployment{},
		pods:        map[types.NamespacedName]member{},
		tallies:     map[Workload]Pods{},
		changed:     changed,
	}
}

// Picture is the fleet as it is now.
func (f *Fleet) Picture() Picture {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sorted == nil {
		f.sorted = make([]types.NamespacedName, 0, len(f.deployments))
		for name := range f.deployments {
			f.sorted = append(f.sorted, name)
		}
		slices.SortFunc(f.sorted, func(a, b types.NamespacedName) int {
			if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
				return c
			}
			return strings.Compare(a.Name, b.Name)
		})
	}
	deployments := make([]*appsv1.Deployment, 0, len(f.sorted))
	for _, name := range f.sorted {
		deployments = append(deployments, f.deployments[name])
	}
	return Picture{Namespaces: maps.Clone(f.namespaces), Deployments: deployments, Pods: maps.Clone(f.tallies)}
}

// Wrote takes in a Deployment as a write of ours has left it, ahead of the event that tells of it: a plan made from a
// picture without it would write it again.
func (f *Fleet) Wrote(d *appsv1.Deployment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.deployments[nameOf(d)]; known != nil && known.UID == d.UID {
		f.enterDeployment(slim(d))
	}
}

// WroteNamespace is Wrote for a namespace.
func (f *Fleet) WroteNamespace(o metav1.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, found := f.namespaces[o.GetName()]; found && known.UID == o.GetUID() {
		f.enterNamespace(o)
	}
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// enterDeployment takes in a slim Deployment, unless a later state of it is known. It keeps the very object, of which a
// cache has no second one then.
func (f *Fleet) enterDeployment(now *appsv1.Deployment) {
	name := nameOf(now)
	known := f.deployments[name]
	if known != nil && known.UID == now.UID && !later(now.ResourceVersion, known.ResourceVersion) {
		return
	}
	if known == nil {
		f.sorted = nil
	}
	f.deployments[name] = now
	if known == nil || !same(known, now) {
		f.changed()
	}
}

func (f *Fleet) enterNamespace(o metav1.Object) {
	known, found := f.namespaces[o.GetName()]
	if found && known.UID == o.GetUID() && !later(o.GetResourceVersion(), known.ResourceVersion) {
		return
	}
	now := Namespace{Labels: usage.Labels(o.GetLabels()), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
	f.namespaces[o.GetName()] = now
	if !found || !maps.Equal(known.Labels, now.Labels) {
		f.changed()
	}
}

func (f *Fleet) enterPod(o metav1.Object) {
	now := member{workload: workloadOf(o), revision: o.GetAnnotations()[v1.AnnotationRevision]}
	if o.GetDeletionTimestamp() != nil {
		now = member{}
	}
	f.setPod(nameOf(o), now)
}

func (f *Fleet) setPod(name types.NamespacedName, now member) {
	before := f.pods[name]
	if before == now {
		return
	}
	if before != (member{}) {
		f.count(before, -1)
		delete(f.pods, name)
	}
	if now != (member{}) {
		f.count(now, +1)
		f.pods[name] = now
	}
	f.changed()
}

// count replaces the tally instead of changing it: a Picture may have it.
func (f *Fleet) count(m member, by int) {
	tally := maps.Clone(f.tallies[m.workload])
	if tally == nil {
		tally = Pods{}
	}
	tally[m.revision] += by
	if tally[m.revision] == 0 {
		delete(tally, m.revision)
	}
	if len(tally) == 0 {
		delete(f.tallies, m.workload)
		return
	}
	f.tallies[m.workload] = tally
}

func workloadOf(pod metav1.Object) Workload {
	if owner := usage.WorkloadOf(pod); owner != nil {
		return Workload{owner.APIVersion, owner.Kind, pod.GetNamespace(), owner.Name}
	}
	return Workload{"v1", kindPod, pod.GetNamespace(), pod.GetName()}
}

// later compares resource versions. Ones that cannot be compared are taken for later, as events come in order.
func later(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
