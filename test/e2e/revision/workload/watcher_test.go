package workload_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness/history"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// watcher records every version of every Deployment of a mesh.
type watcher struct {
	*history.History[*appsv1.Deployment]
}

func (m *mesh) watch(t testing.TB) watcher {
	t.Helper()
	return watcher{history.Follow[*appsv1.Deployment](t, m, &appsv1.DeploymentList{}, client.MatchingLabels{labelMesh: m.istio.Name})}
}

// proves checks that no Deployment ever had fewer pods available than it allows itself in a rolling update, that never more
// than so many were restarting at once, and that none was restarted while it was.
func (w watcher) proves(t testing.TB, batchSize int) {
	t.Helper()
	r := w.replay(t)
	for _, wrong := range append(r.shortages, r.interrupted...) {
		t.Error(wrong)
	}
	if r.most == 0 {
		t.Error("nothing was seen restarting")
	}
	if r.most > batchSize {
		t.Errorf("%d were restarting at once, want at most %d: %v", r.most, batchSize, r.atMost)
	}
}

func (w watcher) replay(t testing.TB) *replay {
	t.Helper()
	r := &replay{
		latest: map[types.NamespacedName]*appsv1.Deployment{}, well: map[types.NamespacedName]bool{},
		restarting: map[types.NamespacedName]bool{},
	}
	for _, event := range w.Events(t) {
		r.take(event)
	}
	return r
}

// replay goes through what has happened, one version after the other.
type replay struct {
	latest map[types.NamespacedName]*appsv1.Deployment
	// well are those that have had all their pods.
	well map[types.NamespacedName]bool
	// restarting are those whose pod template has changed, until only new pods are left and all are available, or until
	// they were given up.
	restarting map[types.NamespacedName]bool

	shortages, interrupted []string

	most   int
	atMost []types.NamespacedName
	// starts are the names of those that began to restart, in that order.
	starts []string
}

func (r *replay) take(event history.Event[*appsv1.Deployment]) {
	d := event.Object
	key := client.ObjectKeyFromObject(d)
	if event.Type == watch.Deleted {
		delete(r.latest, key)
		delete(r.well, key)
		delete(r.restarting, key)
		return
	}
	before := r.latest[key]
	r.latest[key] = d
	if before != nil && !equality.Semantic.DeepEqual(before.Spec.Template, d.Spec.Template) {
		if r.restarting[key] {
			r.interrupted = append(r.interrupted, fmt.Sprintf("Deployment %s was restarted while it was restarting", key))
		}
		r.restarting[key] = true
		r.starts = append(r.starts, d.Name)
	}
	if complete(d) {
		r.well[key] = true
		delete(r.restarting, key)
	}
	if strings.Contains(d.Annotations[v1.AnnotationMigration], `"failed"`) {
		delete(r.restarting, key)
	}
	if least := leastAvailable(d); r.well[key] && d.Status.AvailableReplicas < least {
		r.shortages = append(r.shortages, fmt.Sprintf("Deployment %s had %d pods available, want %d at least: %+v",
			key, d.Status.AvailableReplicas, least, d.Status))
	}
	if len(r.restarting) > r.most {
		r.most = len(r.restarting)
		r.atMost = slices.Collect(maps.Keys(r.restarting))
	}
}

// leastAvailable is replicas - maxUnavailable, as the controller of Deployments reckons it.
func leastAvailable(d *appsv1.Deployment) int32 {
	desired := ptr.Deref(d.Spec.Replicas, 1)
	rolling := d.Spec.Strategy.RollingUpdate
	if rolling == nil {
		return 0
	}
	surge, surgeErr := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, int(desired), true)
	down, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(desired), false)
	if surgeErr != nil || err != nil {
		return desired
	}
	if surge == 0 && down == 0 {
		// There would be no way forward.
		down = 1
	}
	return desired - int32(down)
}

// endpoints records every version of the EndpointSlices of a namespace: what a load balancer knows.
type endpoints struct {
	*history.History[*discoveryv1.EndpointSlice]
}

func (m *mesh) watchEndpoints(t testing.TB, namespace string) endpoints {
	t.Helper()
	return endpoints{history.Follow[*discoveryv1.EndpointSlice](t, m, &discoveryv1.EndpointSliceList{}, client.InNamespace(namespace))}
}

// serves waits until all Services have as many ready endpoints as they should.
func (e endpoints) serves(t testing.TB, full map[string]int) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		if least, _ := e.served(t, full); !maps.Equal(least, full) {
			return fmt.Errorf("there are %v ready endpoints, not %v", least, full)
		}
		return nil
	})
}

// served is the least number of ready endpoints that each Service ever had, from when it first had as many as it should,
// and how many different ones it had altogether.
func (e endpoints) served(t testing.TB, full map[string]int) (least, different map[string]int) {
	t.Helper()
	slices, seen := map[string]map[string]int{}, map[string]map[string]bool{}
	least, different = map[string]int{}, map[string]int{}
	for _, event := range e.Events(t) {
		service := event.Object.Labels[discoveryv1.LabelServiceName]
		if slices[service] == nil {
			slices[service], seen[service] = map[string]int{}, map[string]bool{}
		}
		delete(slices[service], event.Object.Name)
		if event.Type != watch.Deleted {
			for _, endpoint := range event.Object.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, true) {
					slices[service][event.Object.Name]++
					seen[service][endpoint.TargetRef.Name] = true
				}
			}
		}
		ready := 0
		for _, n := range slices[service] {
			ready += n
		}
		if before, begun := least[service]; begun && ready < before || !begun && ready == full[service] {
			least[service] = ready
		}
		different[service] = len(seen[service])
	}
	return least, different
}
