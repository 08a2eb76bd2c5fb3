package serving

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

var (
	cart = model.ProxyID{Mesh: "default", Namespace: "shop", Name: "cart-0"}
	web  = model.ProxyID{Mesh: "default", Namespace: "shop", Name: "web-0"}
)

// process is a process that serves proxies, without the proxies.
type process struct {
	connections map[model.ProxyID]model.Connection
	sent        map[string]bool
	changed     func(model.ProxyID)
	switched    func(string)
	*Reporter
	writes int
}

func newProcess(t testing.TB, c client.Client, name string) *process {
	t.Helper()
	p := &process{connections: map[model.ProxyID]model.Connection{}}
	p.Reporter = NewReporter(countWrites(c, &p.writes), name, Source{
		Connection:   func(id model.ProxyID) model.Connection { return p.connections[id] },
		OnConnection: func(f func(model.ProxyID)) { p.changed = f },
		Consumer:     func(id model.ProxyID) string { return id.Name },
		Sent:         func(string) (map[string]bool, bool) { return p.sent, p.sent != nil },
		Recorded:     func(string) map[string]bool { return p.sent },
		OnSwitched:   func(f func(string)) { p.switched = f },
	}, logr.Discard())
	p.stale[0] = true
	return p
}

func countWrites(c client.Client, n *int) client.Client {
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			*n++
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			*n++
			return c.Patch(ctx, o, p, options...)
		},
	})
}

// publishes has the process publish configurations with these consumers switched.
func (p *process) publishes(consumers ...string) {
	p.sent = map[string]bool{}
	for _, name := range consumers {
		p.sent[name] = true
	}
	p.switched("default")
}

func (p *process) connects(id model.ProxyID, c model.Connection) {
	p.connections[id] = c
	p.changed(id)
}

// reports writes what differs.
func (p *process) reports(t testing.TB) {
	t.Helper()
	p.update()
	if err := p.write(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// reader reads the reports of a cluster, as its informer would.
type reader struct {
	*Reports
	client.Client
	clock   time.Time
	changed map[model.ProxyID]bool
	known   map[string]*fairleadv1alpha1.MeshServingReport
}

func newReader(t testing.TB) *reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := fairleadv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := &reader{Client: c, Reports: NewReports(nil, c, true, logr.Discard()), clock: time.Unix(1_000_000, 0), known: map[string]*fairleadv1alpha1.MeshServingReport{}}
	r.now = func() time.Time { return r.clock }
	r.changed = map[model.ProxyID]bool{}
	r.OnChange(func(id model.ProxyID) { r.changed[id] = true })
	return r
}

// reads takes what has changed, and says of which proxies.
func (r *reader) reads(t testing.TB) []model.ProxyID {
	t.Helper()
	clear(r.changed)
	var list fairleadv1alpha1.MeshServingReportList
	if err := r.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	gone := maps.Clone(r.known)
	for i := range list.Items {
		report := &list.Items[i]
		delete(gone, report.Name)
		if before := r.known[report.Name]; before == nil || before.ResourceVersion != report.ResourceVersion {
			r.put(report)
			r.known[report.Name] = report
		}
	}
	for name, report := range gone {
		r.remove(report)
		delete(r.known, name)
	}
	return slices.Collect(maps.Keys(r.changed))
}

func (r *reader) says(t testing.TB, id model.ProxyID, want model.Connection) {
	t.Helper()
	if got := r.Connection(id); got != want {
		t.Errorf("%s: %+v, want %+v", id, got, want)
	}
}

// A proxy of each of two processes, one of which is not the one that reads, is seen with what it has acknowledged.
func TestReports(t *testing.T) {
	r := newReader(t)
	one, two := newProcess(t, r.Client, "one"), newProcess(t, r.Client, "two")
	for _, p := range []*process{one, two} {
		p.publishes()
		p.reports(t)
	}
	r.reads(t)
	if n := r.Replicas(); n != 2 {
		t.Fatalf("%d processes", n)
	}
	r.says(t, cart, model.Connection{})

	one.connects(cart, model.Connection{Connected: true, Current: true})
	two.connects(web, model.Connection{Connected: true})
	one.reports(t)
	two.reports(t)
	r.reads(t)
	r.says(t, cart, model.Connection{Connected: true, Current: true})
	r.says(t, web, model.Connection{Connected: true})

	two.publishes("web-0")
	two.connects(web, model.Connection{Connected: true, Current: true})
	two.reports(t)
	if changed := r.reads(t); !slices.Equal(changed, []model.ProxyID{web}) {
		t.Errorf("changed are %v", changed)
	}
	r.says(t, web, model.Connection{Connected: true, Current: true, Switched: true})

	// Nothing changes, so nothing is written.
	before := two.writes
	two.changed(web)
	two.reports(t)
	if two.writes != before {
		t.Errorf("%d writes without a change", two.writes-before)
	}

	if r.HaveRecorded("default", map[string]bool{"web-0": true}) {
		t.Error("one process has not read the slices, and yet they count as read by all")
	}
	one.publishes("web-0")
	one.reports(t)
	r.reads(t)
	if !r.HaveRecorded("default", map[string]bool{"web-0": true}) {
		t.Error("all processes have read the slices, and yet they do not count as read")
	}
}

// A process that ends without a word is left out after a while, and its proxies count where they reconnect.
func TestEndedProcess(t *testing.T) {
	r := newReader(t)
	one, two := newProcess(t, r.Client, "one"), newProcess(t, r.Client, "two")
	one.publishes("cart-0")
	two.publishes("cart-0")
	one.connects(cart, model.Connection{Connected: true, Current: true})
	one.reports(t)
	two.reports(t)
	r.reads(t)

	// It has ended, and the proxy has reconnected to the other one: until that is certain, both have to be current.
	two.connects(cart, model.Connection{Connected: true})
	two.reports(t)
	r.reads(t)
	if c := r.Connection(cart); !c.Connected || c.Current {
		t.Errorf("%+v", c)
	}
	two.connects(cart, model.Connection{Connected: true, Current: true})
	two.reports(t)
	r.clock = r.clock.Add(expiry)
	r.reads(t)
	clear(r.changed)
	r.clock = r.clock.Add(time.Second)
	if forgotten := r.expire(); len(forgotten) > 0 || !r.changed[cart] || r.Replicas() != 1 {
		t.Errorf("forgotten are %v, changed %v, of %d processes", forgotten, r.changed, r.Replicas())
	}
	r.says(t, cart, model.Connection{Connected: true, Current: true, Switched: true})

	r.clock = r.clock.Add(forgetAfter)
	two.stale[0] = true
	two.reports(t)
	r.reads(t)
	r.forget(t.Context(), r.expire())
	r.reads(t)
	for name, report := range r.known {
		if report.Replica != "two" {
			t.Errorf("%s is still there", name)
		}
	}
	if r.Replicas() != 1 {
		t.Errorf("%d processes", r.Replicas())
	}
}

// A process that was silent, and not gone, counts again, and creates the reports that were deleted meanwhile.
func TestSilentProcess(t *testing.T) {
	r := newReader(t)
	one := newProcess(t, r.Client, "one")
	one.publishes()
	one.connects(cart, model.Connection{Connected: true, Current: true})
	one.reports(t)
	r.reads(t)
	r.clock = r.clock.Add(forgetAfter + time.Second)
	r.forget(t.Context(), r.expire())
	r.reads(t)
	r.says(t, cart, model.Connection{})
	one.stale[0] = true // as when it renews its reports
	one.reports(t)
	r.reads(t)
	r.says(t, cart, model.Connection{Connected: true, Current: true})
}

// A process that is told to end deletes its reports, so that nobody waits for it.
func TestStoppedProcess(t *testing.T) {
	r := newReader(t)
	one := newProcess(t, r.Client, "one")
	one.publishes()
	one.connects(cart, model.Connection{Connected: true, Current: true})
	one.reports(t)
	r.reads(t)
	one.deleteAll()
	if changed := r.reads(t); !slices.Equal(changed, []model.ProxyID{cart}) || r.Replicas() != 0 {
		t.Errorf("changed are %v, of %d processes", changed, r.Replicas())
	}
}

// A report that could not be written is written again, also if it was written and the answer was lost.
func TestLostWrites(t *testing.T) {
	r := newReader(t)
	lost := errors.New("the answer is lost")
	fail := true
	c := interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			err := c.Create(ctx, o, options...)
			if fail {
				return lost
			}
			return err
		},
	})
	one := newProcess(t, c, "one")
	one.publishes()
	one.connects(cart, model.Connection{Connected: true, Current: true})
	one.update()
	for range 3 {
		if err := one.write(t.Context()); err != nil && !errors.Is(err, lost) {
			t.Fatal(err)
		}
	}
	fail = false
	one.reports(t)
	r.reads(t)
	r.says(t, cart, model.Connection{Connected: true, Current: true})
}
