package workload

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/fairlead/fairlead/internal/revision/workload/injection"
	"github.com/fairlead/fairlead/internal/revision/workload/inventory"
)

const kindPodOfApp = "Pod"

var watchedKinds = []string{kindNamespace, kindPodOfApp, kindCronJob, kindDaemonSet, kindDeployment, kindStatefulSet}

// process is the controller, from its start until it is killed. It is woken up by nothing but what would wake it up in a
// real cluster: news of workloads, a change of an Istio, a revision or a tag, and the time that it asked for.
type process struct {
	*api
	reconciler *reconciler
	informers  map[string]*controllertest.FakeInformer
	// unheard are the events that have not been delivered, by kind.
	unheard   map[string][]func()
	triggered bool
	wakes     time.Time
	// looks is when it looks at the progress that it has heard of.
	looks time.Time
}

// start lets a new controller see what there is.
func (c *cluster) start(mayWrite func() bool) *process {
	p := &process{
		api:       &api{cluster: c, mayWrite: mayWrite},
		unheard:   map[string][]func(){},
		informers: map[string]*controllertest.FakeInformer{},
		triggered: true,
	}
	for _, kind := range watchedKinds {
		p.informers[kind] = controllertest.NewFakeInformer(controllertest.Synced)
	}
	workloads := inventory.New(func(change inventory.Change) {
		if change == inventory.Decisive {
			p.triggered = true
		} else if p.looks.IsZero() {
			p.looks = c.now.Add(debounceProgress)
		}
	})
	synced, err := workloads.Watch(context.Background(), feeds{informers: p.informers}, feeds{informers: p.informers})
	if err != nil {
		c.t.Fatal(err)
	}
	now := func() time.Time { return c.now }
	p.reconciler = &reconciler{
		client: p.api, cache: p.api, live: p.api, inventory: workloads, synced: synced,
		injection: injection.NewChecker(p.api, p.api, now),
		writer:    newWriter(p.api, workloads, now, 1),
		recorder:  recorder{p}, now: now, lastStatusWrite: map[string]time.Time{},
		batches: map[string]reportedBatches{}, metrics: newMetricsRecorder(),
	}
	p.reconciler.metrics.now = now
	p.reconciler.writer.applied = p.reconciler.recordAppliedEvents
	c.controllers = p
	for _, name := range slices.Sorted(maps.Keys(c.namespaces)) {
		p.saw(kindNamespace, c.namespaces[name], false)
	}
	for _, pod := range c.others {
		p.saw(kindPodOfApp, pod, false)
	}
	for _, a := range c.sorted() {
		p.saw(a.kind, a.object(), false)
		for _, pod := range a.pods {
			p.saw(kindPodOfApp, a.podObject(pod), false)
		}
	}
	p.hear(true)
	return p
}

// feeds is a cache that has nothing but informers.
type feeds struct {
	cache.Cache
	informers map[string]*controllertest.FakeInformer
}

func (f feeds) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return f.informers[kind], nil
	}
	return f.informers[reflect.TypeOf(object).Elem().Name()], nil
}

// saw is an event, of which the process hears later.
func (p *process) saw(kind string, object client.Object, deleted bool) {
	if p == nil {
		return
	}
	object = object.DeepCopyObject().(client.Object)
	p.unheard[kind] = append(p.unheard[kind], func() {
		if deleted {
			p.informers[kind].Delete(object)
			return
		}
		p.informers[kind].Add(object)
	})
}

// hear delivers events, in their order for each kind.
func (p *process) hear(all bool) {
	for _, kind := range watchedKinds {
		events := p.unheard[kind]
		count := len(events)
		switch {
		case all:
		case kind == kindPodOfApp && p.now.Before(p.podsHeard):
			count = 0
		default:
			count = p.lag(count)
		}
		p.unheard[kind] = events[count:]
		for _, event := range events[:count] {
			event()
		}
	}
}

func (p *process) quiet() bool {
	for kind, events := range p.unheard {
		if len(events) > 0 && (kind != kindPodOfApp || !p.now.Before(p.podsHeard)) {
			return false
		}
	}
	return !p.triggered
}

// work does all that can be done without time passing, and tells whether the process is alive.
func (p *process) work() bool {
	for range 500 {
		p.hear(false)
		if due := earliest(p.wakes, p.looks); !due.IsZero() && !p.now.Before(due) {
			p.triggered = true
		}
		if !p.triggered {
			if p.quiet() {
				return true
			}
			continue
		}
		p.triggered, p.wakes, p.looks = false, time.Time{}, time.Time{}
		result, err := p.reconciler.Reconcile(ctrl.LoggerInto(context.Background(), logr.Discard()), ctrl.Request{NamespacedName: types.NamespacedName{Name: "default"}})
		switch {
		case p.dead:
			return false
		case err != nil:
			p.t.Fatalf("%s: %v", p.now.Sub(epoch), err)
		case result.RequeueAfter > 0:
			p.wakes = p.now.Add(result.RequeueAfter)
		}
	}
	p.t.Fatalf("%s: it does not come to rest", p.now.Sub(epoch))
	return false
}

// next is when something happens by itself, the zero time if nothing does.
func (c *cluster) next() time.Time {
	var next time.Time
	for _, a := range c.apps {
		next = earliest(next, a.acts)
	}
	if len(c.coming) > 0 {
		next = earliest(next, c.coming[0].at)
	}
	if c.now.Before(c.podsHeard) {
		next = earliest(next, c.podsHeard)
	}
	if p := c.controllers; p != nil && !p.dead {
		next = earliest(earliest(next, p.wakes), p.looks)
	}
	return next
}

// pass lets time pass until then, and happen what is due.
func (c *cluster) pass(then time.Time) {
	c.now = latest(c.now, then)
	for len(c.coming) > 0 && !c.coming[0].at.After(c.now) {
		due := c.coming[0]
		c.coming = c.coming[1:]
		if due.reported != "" {
			c.tell("* %s", due.reported)
		}
		due.do()
	}
	for _, a := range c.sorted() {
		if !a.acts.IsZero() && !a.acts.After(c.now) {
			a.act()
		}
	}
}

// recorder tells of events.
type recorder struct{ *process }

func (r recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	if r.dead {
		return
	}
	on := "Istio"
	switch o, ok := regarding.(*metav1.PartialObjectMetadata); {
	case ok && o.Namespace != "":
		on = o.Namespace + "/" + o.Name
	case ok:
		on = "namespace " + o.Name
	}
	r.tell("event    %s on %s: %s: %s", strings.ToLower(kind), on, reason, fmt.Sprintf(note, args...))
}

// run lets the cluster and its controller go on until nothing happens any more. A controller that is killed comes back
// after a while.
func (c *cluster) run(mayWrite func() bool, downtime time.Duration) {
	c.start(mayWrite)
	for range 5000 {
		if !c.controllers.work() {
			c.tell("* the operator is killed")
			c.controllers = nil
			for back := c.now.Add(downtime); c.now.Before(back); {
				then := c.next()
				if then.IsZero() || then.After(back) {
					then = back
				}
				c.pass(then)
			}
			c.tell("* and comes back")
			c.start(mayWrite)
			continue
		}
		then := c.next()
		if then.IsZero() {
			return
		}
		c.pass(then)
	}
	c.t.Fatal("it goes on for ever")
}
