package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// noon is when these tests begin.
var noon = time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)

// small has resources without bodies: "c:a@1" is version 1 of cluster a, and c, e, l and r are the types.
func small(written string) *resource.Config {
	all := map[resource.Type][]*resource.Resource{}
	for _, one := range strings.Fields(written) {
		kind, rest, _ := strings.Cut(one, ":")
		name, version, _ := strings.Cut(rest, "@")
		of := resource.Type(strings.Index("celr", kind))
		all[of] = append(all[of], &resource.Resource{Name: name, Version: version})
	}
	return resource.NewConfig(all)
}

func (l list) String() string {
	var all []string
	for _, r := range l {
		all = append(all, r.Name+"@"+r.Version)
	}
	return strings.Join(all, " ")
}

// play is a ledger with a proxy that can be told what to do.
type play struct {
	streamState
	now    time.Time
	config *resource.Config
	nonce  int
}

func begin(written string) *play {
	return &play{streamState: streamState{timing: DefaultTiming(), references: newReferenceCache()}, now: noon, config: small(written)}
}

func (p *play) set(written string) {
	next := small(written)
	p.configChanged(p.config, next)
	p.config = next
}

func (p *play) subscribe(t resource.Type, names ...string) {
	asked := map[string]struct{}{}
	for _, name := range names {
		asked[name] = struct{}{}
	}
	p.types[t].subscribe(len(names) == 0, asked)
}

func (p *play) offered(t resource.Type) (list, time.Time) {
	arranged := p.planPrewarm(p.config, p.now)
	next, again := p.nextResources(t, p.config, arranged, p.now)
	return next, earliest(again, arranged.requeueAt)
}

// send gives the proxy what it should know of a type by now.
func (p *play) send(t resource.Type) string {
	next, _ := p.offered(t)
	page := &p.types[t]
	sent := next.changedFrom(page.known)
	p.recordResponse(t, next, sent, p.config.Version(t), resource.Digest(next))
	p.nonce++
	page.setNonce(fmt.Sprint(p.nonce))
	return next.String()
}

func (p *play) ack(t resource.Type)    { p.answer(t, "") }
func (p *play) refuse(t resource.Type) { p.answer(t, "no") }

func (p *play) answer(t resource.Type, against string) {
	flights := p.types[t].responses
	p.acknowledge(t, flights[len(flights)-1].nonce, against, p.config.Version(t), p.now)
	p.seen(t)
}

// seen notes how far the proxy is with a type.
func (p *play) seen(t resource.Type) {
	p.updateCurrentVersion(t, p.config)
	if p.convergedAt.IsZero() && p.isCurrent(p.config) {
		p.convergedAt = p.now
	}
}

// take sends and acknowledges everything.
func (p *play) take() {
	for _, t := range resource.Types() {
		p.send(t)
		p.ack(t)
	}
}

func (p *play) wants(t *testing.T, of resource.Type, want string) {
	t.Helper()
	if got, _ := p.offered(of); got.String() != want {
		t.Errorf("of type %d the proxy is offered %q, want %q", of, got, want)
	}
}

const (
	before = "c:a@1 e:a@1 l:x@1 r:x@1"
	after  = "c:b@1 e:b@1 l:x@2 r:x@2"
)

// settled is a proxy like Envoy that has taken all of what it was to have before.
func settled() *play {
	p := begin(before)
	p.subscribe(resource.Cluster)
	p.subscribe(resource.Listener)
	p.subscribe(resource.Endpoint, "a", "b")
	p.subscribe(resource.Route, "x")
	p.take()
	p.now = p.now.Add(time.Minute)
	return p
}

func TestIsLedToAClusterOnceItKnowsIt(t *testing.T) {
	p := settled()
	p.set(after)
	held := func(why string) {
		t.Helper()
		for _, of := range []resource.Type{resource.Listener, resource.Route} {
			if got, _ := p.offered(of); got.String() != "x@1" {
				t.Errorf("%s, it is led with %s", why, got)
			}
		}
	}
	held("without the cluster")
	p.send(resource.Cluster)
	held("without its word on the cluster")
	p.ack(resource.Cluster)
	p.send(resource.Endpoint)
	held("without its word on the endpoints")
	p.ack(resource.Endpoint)
	held("at once")
	if _, again := p.offered(resource.Listener); again.Sub(p.now) != p.timing.ClusterWarmup {
		t.Errorf("it is asked again at %s", again)
	}
	p.now = p.now.Add(p.timing.ClusterWarmup)
	p.wants(t, resource.Listener, "x@2")
	p.wants(t, resource.Route, "x@2")
}

func TestIsNotLedToAClusterThatItRefuses(t *testing.T) {
	p := settled()
	p.set(after)
	p.send(resource.Cluster)
	p.refuse(resource.Cluster)
	p.now = p.now.Add(time.Hour)
	p.wants(t, resource.Listener, "x@1")
	if p.nackMessage() != "no" || p.isCurrent(p.config) {
		t.Error("the refusal goes unnoticed")
	}
	// It is not offered again as it is, but with the next version.
	if next, _ := p.offered(resource.Cluster); len(next.changedFrom(p.types[resource.Cluster].known)) > 0 {
		t.Error("it is offered again what it has just refused")
	}
	p.set("c:b@2 e:b@1 l:x@2 r:x@2")
	if p.nackMessage() != "" {
		t.Error("the refusal of something older stands")
	}
	// What it never took is not kept for it.
	p.wants(t, resource.Cluster, "a@1 b@2")
}

func TestIsNotHeldBack(t *testing.T) {
	for name, c := range map[string]struct {
		proxy func() *play
		now   string
		want  string
	}{
		"it is new here": {func() *play {
			p := begin(before)
			p.subscribe(resource.Cluster)
			p.subscribe(resource.Listener)
			return p
		}, before, "x@1"},
		"it came back, and is held": {func() *play {
			p := begin(before)
			p.hadListeners = true
			p.subscribe(resource.Cluster)
			p.subscribe(resource.Listener)
			return p
		}, before, ""},
		"it asks for clusters by name": {func() *play {
			p := settled()
			p.subscribe(resource.Cluster, "a")
			return p
		}, after, "x@2"},
		"there is no new cluster":           {settled, "c:a@1 e:a@1 l:x@2 r:x@1", "x@2"},
		"a cluster it has is another":       {settled, "c:a@2 e:a@2 l:x@2 r:x@1", "x@2"},
		"a cluster goes":                    {settled, "l:x@2", "x@2"},
		"it asks for a listener it has not": {func() *play { p := settled(); p.subscribe(resource.Listener, "y"); return p }, after + " l:y@1", "y@1"},
		"it has a listener, and is held":    {func() *play { p := settled(); p.subscribe(resource.Listener, "x", "y"); return p }, after + " l:y@1", "x@1 y@1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.proxy()
			p.set(c.now)
			p.wants(t, resource.Listener, c.want)
		})
	}
}

func TestTheOldGoesLast(t *testing.T) {
	p := settled()
	p.set(after)
	p.wants(t, resource.Cluster, "a@1 b@1")
	p.wants(t, resource.Endpoint, "a@1 b@1")
	p.send(resource.Cluster)
	p.ack(resource.Cluster)
	p.send(resource.Endpoint)
	p.ack(resource.Endpoint)
	p.now = p.now.Add(time.Hour)
	p.wants(t, resource.Cluster, "a@1 b@1")
	p.send(resource.Listener)
	p.ack(resource.Listener)
	p.wants(t, resource.Cluster, "a@1 b@1")
	p.send(resource.Route)
	p.now = p.now.Add(time.Hour)
	p.wants(t, resource.Cluster, "a@1 b@1")
	p.ack(resource.Route)
	if !p.isCurrent(p.config) {
		t.Error("with all that is new it is not current")
	}
	if _, again := p.offered(resource.Cluster); again.Sub(p.now) != p.timing.RemovalDelay {
		t.Errorf("it is asked again at %s", again)
	}
	// Other endpoints do not put it off, and other routes do.
	p.set(strings.ReplaceAll(after, "e:b@1", "e:b@2"))
	p.now = p.now.Add(p.timing.RemovalDelay)
	p.wants(t, resource.Cluster, "b@1")
	p.wants(t, resource.Endpoint, "b@2")
	p.set(strings.ReplaceAll(after, "r:x@2", "r:x@3"))
	p.wants(t, resource.Cluster, "a@1 b@1")
}

// A proxy asks for the routes of a new listener after it has acknowledged that one: until it has them, it still needs the old.
func TestTheOldWaitsForRoutesOfANewListener(t *testing.T) {
	p := settled()
	p.set("c:b@1 e:b@1 l:y@1 r:y@1")
	for _, of := range []resource.Type{resource.Cluster, resource.Endpoint} {
		p.send(of)
		p.ack(of)
	}
	p.now = p.now.Add(time.Hour)
	p.send(resource.Listener)
	p.ack(resource.Listener)
	p.seen(resource.Route)
	p.now = p.now.Add(p.timing.RemovalDelay - time.Second)
	p.subscribe(resource.Route, "y")
	p.send(resource.Route)
	p.now = p.now.Add(time.Hour)
	p.wants(t, resource.Cluster, "a@1 b@1")
	p.ack(resource.Route)
	p.wants(t, resource.Cluster, "a@1 b@1")
	p.now = p.now.Add(p.timing.RemovalDelay)
	p.wants(t, resource.Cluster, "b@1")
}

// A proxy waits for the endpoints of a cluster that has changed, although they have not.
func TestEndpointsOfAnotherVersionOfACluster(t *testing.T) {
	p := settled()
	p.set("c:a@2 e:a@1 l:x@1 r:x@1")
	p.send(resource.Cluster)
	next, _ := p.offered(resource.Endpoint)
	if got := next.changedFrom(p.types[resource.Endpoint].known).String(); got != "a@1" {
		t.Errorf("it is sent the endpoints %q", got)
	}
}

func TestPage(t *testing.T) {
	one, two := list(small("c:a@1").Of(resource.Cluster)), list(small("c:a@2").Of(resource.Cluster))
	t.Run("what was not sent is taken back", func(t *testing.T) {
		var p typeState
		p.recordResponse(one, one, "v1", "v1")
		p.dropUnsent()
		if p.known != nil || p.responded || len(p.responses) > 0 {
			t.Errorf("left is %+v", p)
		}
		p.recordResponse(one, one, "v1", "v1")
		p.setNonce("1")
		p.dropUnsent()
		if !p.known.equals(one) || !p.acknowledge("1", "", "v1") || !p.acked.equals(one) {
			t.Errorf("what was sent is taken back: %+v", p)
		}
	})
	t.Run("a word on nothing", func(t *testing.T) {
		var p typeState
		p.recordResponse(one, one, "v1", "v1")
		for _, nonce := range []string{"", "7"} {
			if p.acknowledge(nonce, "", "v1") {
				t.Errorf("nonce %q was taken for that of an answer", nonce)
			}
		}
	})
	t.Run("a late refusal", func(t *testing.T) {
		var p typeState
		p.recordResponse(one, one, "v1", "v1")
		p.setNonce("1")
		p.acknowledge("1", "no", "v2")
		if p.nack != nil || len(two.changedFrom(p.known)) == 0 || len(one.changedFrom(p.known)) == 0 {
			t.Errorf("what was refused counts as known: %+v", p)
		}
	})
	t.Run("one of two is refused", func(t *testing.T) {
		var p typeState
		p.recordResponse(one, one, "v1", "v1")
		p.setNonce("1")
		both := one.union(list(small("c:b@1").Of(resource.Cluster)))
		p.recordResponse(both, both.changedFrom(one), "v1", "v2")
		p.setNonce("2")
		p.acknowledge("1", "no", "v1")
		p.acknowledge("2", "", "v1")
		if p.nack == nil || p.acked.String() != "b@1" {
			t.Errorf("acknowledged is %s", p.acked)
		}
	})
	t.Run("answers without a word", func(t *testing.T) {
		var p typeState
		for i := range 100 {
			p.recordResponse(one, one, "v1", "v1")
			p.setNonce(fmt.Sprint(i))
		}
		if len(p.responses) != maxInflight || !p.acknowledge("99", "", "v1") || len(p.responses) != 0 {
			t.Errorf("%d answers are remembered", len(p.responses))
		}
	})
}
