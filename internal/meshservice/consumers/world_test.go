package consumers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a mesh with proxies and a clock of its own. What takes minutes takes it microseconds.
type world struct {
	t       *testing.T
	now     time.Time
	mesh    *kumav1alpha1.Mesh
	slices  map[string]fairleadv1alpha1.MeshConsumerSlice
	proxies map[string]*proxy
	coming  []happening
	// The process: when it started, what its feed has sent, and whether it runs.
	started time.Time
	sent    map[string]bool
	up      bool
	life    int
	serving bool
	// diesAfter are the decisions, and diesAfterWrite the single writes, after which the process is killed.
	decisions, writes         int
	diesAfter, diesAfterWrite map[int]bool
	log                       strings.Builder
	reported                  string
}

type proxy struct {
	model.Proxy
	connection model.Connection
	// refuses what it is sent once switched, loses its stream over it, or says nothing; never connects.
	refuses, drops, mute, never bool
	configured                  bool
	version                     int
}

type happening struct {
	at       time.Time
	reported string
	do       func()
}

// How long things take.
const (
	sending   = time.Second
	answering = 2 * time.Second
	returning = 10 * time.Second
	downtime  = 5 * time.Second
	timeout   = time.Minute
)

func newWorld(t *testing.T) *world {
	return &world{
		t: t, now: epoch, started: epoch.Add(-time.Hour), up: true, serving: true, sent: map[string]bool{},
		proxies: map[string]*proxy{}, diesAfter: map[int]bool{}, diesAfterWrite: map[int]bool{},
		slices: map[string]fairleadv1alpha1.MeshConsumerSlice{}, mesh: makeMesh(kumav1alpha1.ModeReachableBackendRefs),
	}
}

func makeMesh(mode kumav1alpha1.Mode) *kumav1alpha1.Mesh {
	mesh := &kumav1alpha1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1, Annotations: map[string]string{}}}
	setMode(mesh, mode)
	return mesh
}

func setMode(mesh *kumav1alpha1.Mesh, mode kumav1alpha1.Mode) {
	mesh.Spec.MeshServices = &kumav1alpha1.MeshServices{Mode: mode}
	mesh.Status.Mode, mesh.Status.ObservedGeneration = mode, mesh.Generation
	mesh.Status.MeshServices = &kumav1alpha1.MeshServiceCount{Total: 3}
	setGenerated(mesh, metav1.ConditionTrue, kumav1alpha1.ReasonGenerated, "3 MeshServices, 3 of them generated")
}

func setGenerated(mesh *kumav1alpha1.Mesh, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&mesh.Status.Conditions, metav1.Condition{
		Type: kumav1alpha1.ConditionGenerated, Status: status, Reason: reason, Message: message, ObservedGeneration: mesh.Generation,
	})
}

// deploy adds a consumer with proxies that are connected.
func (w *world) deploy(name string, replicas int, traits ...func(*proxy)) {
	for i := range replicas {
		w.start(name, fmt.Sprintf("%s-%d", name, i), traits...)
	}
}

func (w *world) start(consumer, name string, traits ...func(*proxy)) {
	p := &proxy{Proxy: model.Proxy{
		ID: model.ProxyID{Mesh: "default", Namespace: "shop", Name: name}, Consumer: "shop/Deployment/" + consumer,
	}}
	for _, trait := range traits {
		trait(p)
	}
	w.proxies[name] = p
	w.connect(p)
}

func (w *world) connect(p *proxy) {
	if p.never || !w.up || w.proxies[p.ID.Name] != p {
		return
	}
	p.connection.Connected = true
	w.configure(p)
}

// configure gives a proxy what its consumer should have, and lets it answer.
func (w *world) configure(p *proxy) {
	p.configured = w.sent[p.Consumer]
	p.connection.Current, p.connection.NACK = false, ""
	p.version++
	version := p.version
	w.after(answering, "", func() {
		switch {
		case p.version != version || !p.connection.Connected || w.proxies[p.ID.Name] != p:
		case p.configured && p.refuses:
			p.connection.NACK = "cluster cart_shop_default_default_msvc_80: unknown field"
		case p.configured && p.drops:
			p.connection = model.Connection{}
		case p.configured && p.mute:
		default:
			p.connection.Current = true
		}
	})
}

func (w *world) after(d time.Duration, reported string, do func()) {
	w.coming = append(w.coming, happening{w.now.Add(d), reported, do})
	slices.SortStableFunc(w.coming, func(a, b happening) int { return a.at.Compare(b.at) })
}

// on is something that people do, so many seconds after the beginning.
func (w *world) on(second int, reported string, do func()) {
	w.after(epoch.Add(time.Duration(second)*time.Second).Sub(w.now), reported, do)
}

func (w *world) annotate(key, value string) {
	if value == "" {
		delete(w.mesh.Annotations, key)
		return
	}
	w.mesh.Annotations[key] = value
}

func (w *world) ask(intent Intent) {
	text, err := intent.Annotation()
	if err != nil {
		w.t.Fatal(err)
	}
	w.annotate(kumav1alpha1.AnnotationMigrate, text)
}

func (w *world) asks(second int, intent Intent) {
	reported := fmt.Sprintf("fairlead migrate mesh default --batch-size %d --delay %s", max(intent.BatchSize, 1), intent.Delay.Duration)
	if len(intent.Consumers) > 0 {
		reported += " --consumers " + strings.Join(intent.Consumers, ",")
	}
	if intent.AllowDisconnected {
		reported += " --allow-disconnected"
	}
	if intent.Revert {
		reported += " --revert"
	}
	w.on(second, reported, func() { w.ask(intent) })
}

// recorded are the slices, and record the Mesh with what they record.
func (w *world) recorded() []fairleadv1alpha1.MeshConsumerSlice {
	var all []fairleadv1alpha1.MeshConsumerSlice
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		slice := w.slices[name]
		all = append(all, *slice.DeepCopy())
	}
	return all
}

func (w *world) record() *kumav1alpha1.Mesh { return WithRecord(w.mesh.DeepCopy(), w.recorded()) }

// replace is `kubectl replace --force`: the Mesh is deleted, and another one created of the manifest.
func (w *world) replace(annotations map[string]string) {
	mode := w.mesh.Mode()
	w.mesh = makeMesh(mode)
	w.mesh.UID, w.mesh.Annotations = "another", annotations
}

func (w *world) observe() Observed {
	o := Observed{
		Mesh: w.record(), Slices: w.recorded(), Serving: w.serving, Sent: w.sent, Started: w.started, Timeout: timeout,
		Connection: func(id model.ProxyID) model.Connection { return w.proxies[id.Name].connection },
	}
	for _, name := range slices.Sorted(maps.Keys(w.proxies)) {
		o.Proxies = append(o.Proxies, w.proxies[name].Proxy)
	}
	return o
}

// run until nothing happens any more.
func (w *world) run() {
	for range 10000 {
		next := w.look()
		switch {
		case len(w.coming) > 0 && (next.IsZero() || !w.coming[0].at.After(next)):
			h := w.coming[0]
			w.coming = w.coming[1:]
			w.now = h.at
			if h.reported != "" {
				w.tell("* %s", h.reported)
			}
			h.do()
		case !next.IsZero():
			w.now = next
		default:
			return
		}
		w.check()
	}
	w.t.Fatal("it never ends")
}

// look is one reconcile; it returns when it wants to look again.
func (w *world) look() time.Time {
	if !w.up {
		return time.Time{}
	}
	o := w.observe()
	d := Decide(o, w.now)
	if d.Condition == nil {
		return d.RequeueAt
	}
	d.Condition.LastTransitionTime = metav1.NewTime(w.now)
	changed := false
	write := func(do func()) (goesOn bool) {
		do()
		if w.writes++; !changed {
			changed = true
			w.report(d)
		}
		if w.diesAfterWrite[w.writes] {
			w.crash()
			return false
		}
		return true
	}
	for _, one := range sliceWrites(w.mesh.Name, o.Slices, d.Record) {
		if !write(func() {
			if w.slices[one.slice.Name] = *one.slice; one.action == deleteSlice {
				delete(w.slices, one.slice.Name)
			}
		}) {
			return time.Time{}
		}
	}
	now := w.mesh.Status.DeepCopy()
	now.Migration = withoutConsumers(d.Record)
	meta.SetStatusCondition(&now.Conditions, *d.Condition)
	if !equality.Semantic.DeepEqual(&w.mesh.Status, now) && !write(func() { w.mesh.Status = *now }) {
		return time.Time{}
	}
	if changed {
		if w.decisions++; w.diesAfter[w.decisions] {
			w.crash()
			return time.Time{}
		}
		w.send()
	}
	return d.RequeueAt
}

// send is the feed: a moment later all proxies have what the record says.
func (w *world) send() {
	life := w.life
	w.after(sending, "", func() {
		if w.life != life {
			return
		}
		w.sent = Switched(w.record())
		for _, name := range slices.Sorted(maps.Keys(w.proxies)) {
			if p := w.proxies[name]; p.connection.Connected && p.configured != w.sent[p.Consumer] {
				w.configure(p)
			}
		}
	})
}

func (w *world) crash() {
	w.tell("* the operator is killed")
	w.up, w.life = false, w.life+1
	for _, p := range w.proxies {
		p.connection = model.Connection{}
	}
	w.after(downtime, "the operator is back", func() {
		w.up, w.started, w.sent = true, w.now, Switched(w.record())
		for _, name := range slices.Sorted(maps.Keys(w.proxies)) {
			p := w.proxies[name]
			w.after(returning, "", func() { w.connect(p) })
		}
	})
}

// check holds whatever happens: no more than a batch is on its way, and whoever is is known by its proxies.
func (w *world) check() {
	record := w.record().Status.Migration
	if record == nil {
		return
	}
	running := 0
	for _, c := range record.Consumers {
		if isRunning(c.State) {
			running++
		}
		if c.State == kumav1alpha1.ConsumerSwitched && !c.Switched || c.State == kumav1alpha1.ConsumerReverted && c.Switched {
			w.t.Fatalf("%s is %s and Switched is %t", c.Name, c.State, c.Switched)
		}
	}
	if running > int(record.BatchSize) {
		w.t.Fatalf("%d are on their way in batches of %d", running, record.BatchSize)
	}
}

func (w *world) tell(format string, args ...any) {
	fmt.Fprintf(&w.log, "%5s  %s\n", w.now.Sub(epoch), fmt.Sprintf(format, args...))
}

// report tells what was written.
func (w *world) report(d Decision) {
	for _, n := range d.Events {
		kind := "event"
		if n.Type == "Warning" {
			kind = "warning"
		}
		w.tell("  %s %s: %s", kind, n.Reason, n.Message)
	}
	if c := d.Condition; c != nil {
		if line := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); line != w.reported {
			w.reported = line
			w.tell("  %s", line)
		}
	}
	if d.Record == nil {
		w.tell("  no record")
		return
	}
	var states []string
	for _, c := range d.Record.Consumers {
		state := strings.TrimPrefix(c.Name, "shop/Deployment/") + " " + string(c.State)
		if len(c.Proxies) > 0 {
			state += "(" + strings.Join(c.Proxies, " ") + ")"
		}
		states = append(states, state)
	}
	w.tell("  [%s]", cmp.Or(strings.Join(states, ", "), "nobody"))
}
