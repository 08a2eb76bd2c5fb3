package server

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/callers"
)

// client is one without a proxy that has taken a configuration with one target.
func client(config *resource.Config, routes, cluster string) *play {
	p := begin("")
	p.config = config
	p.subscribe(resource.Listener, target)
	p.subscribe(resource.Route, routes)
	p.subscribe(resource.Cluster, cluster)
	p.subscribe(resource.Endpoint, cluster)
	p.take()
	p.now = p.now.Add(time.Minute)
	return p
}

func (p *play) become(next *resource.Config) {
	p.configChanged(p.config, next)
	p.config = next
}

// where the client is led: by these routes, to these clusters, with an introduction to others.
func (p *play) where(t *testing.T) (string, references) {
	t.Helper()
	listeners, _ := p.offered(resource.Listener)
	routes := p.references.of(listeners[0]).routeConfig
	offered, _ := p.offered(resource.Route)
	if found := offered.find(routes); found != nil {
		return routes, p.references.of(found)
	}
	return routes, references{}
}

func TestIntroduction(t *testing.T) {
	there := map[string][]*net.TCPAddr{tag: nil, service: nil}
	for name, names := range map[string][2]string{
		"by other routes":       {tag, service},
		"by routes that change": {target, target},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := callers.Leads(target, names[0], tag, there), callers.Leads(target, names[1], service, there)
			introduced := func() *play {
				p := client(from, names[0], tag)
				p.become(to)
				return p
			}
			stays := func(t *testing.T, p *play, why string) {
				t.Helper()
				routes, to := p.where(t)
				if routes != names[0] || !slices.Equal(to.clusters, []string{tag}) || !slices.Equal(to.prewarmClusters, []string{service}) {
					t.Fatalf("%s, it is led by %s to %v with an introduction to %v", why, routes, to.clusters, to.prewarmClusters)
				}
			}
			goes := func(t *testing.T, p *play) {
				t.Helper()
				if routes, _ := p.where(t); routes != names[1] {
					t.Fatalf("it is still led by %s", routes)
				}
				p.subscribe(resource.Route, names[1])
				if _, to := p.where(t); !slices.Equal(to.clusters, []string{service}) || len(to.prewarmClusters) > 0 {
					t.Fatalf("it is led to %v, with an introduction to %v", to.clusters, to.prewarmClusters)
				}
			}
			t.Run("step by step", func(t *testing.T) {
				p := introduced()
				stays(t, p, "at first")
				p.send(resource.Route)
				p.ack(resource.Route)
				stays(t, p, "with routes that introduce the cluster")
				p.subscribe(resource.Cluster, tag, service)
				p.send(resource.Cluster)
				p.ack(resource.Cluster)
				stays(t, p, "with the cluster")
				p.subscribe(resource.Endpoint, tag, service)
				p.send(resource.Endpoint)
				stays(t, p, "without its word on the endpoints")
				p.ack(resource.Endpoint)
				stays(t, p, "at once")
				if p.isCurrent(p.config) {
					t.Error("it counts as current on the way")
				}
				p.now = p.now.Add(p.timing.ClusterWarmup)
				goes(t, p)
			})
			t.Run("it does not ask for the cluster", func(t *testing.T) {
				p := introduced()
				p.send(resource.Route)
				p.ack(resource.Route)
				stays(t, p, "without asking")
				if _, again := p.offered(resource.Listener); again.Sub(p.now) != p.timing.ClientWait {
					t.Errorf("it is asked again at %s", again)
				}
				p.now = p.now.Add(p.timing.ClientWait)
				goes(t, p)
			})
			t.Run("back on the way", func(t *testing.T) {
				p := introduced()
				p.send(resource.Route)
				p.ack(resource.Route)
				p.become(from)
				if routes, to := p.where(t); routes != names[0] || !slices.Equal(to.clusters, []string{tag}) || len(to.prewarmClusters) > 0 {
					t.Errorf("it is led by %s to %v with an introduction to %v", routes, to.clusters, to.prewarmClusters)
				}
			})
			t.Run("a cluster that is not there", func(t *testing.T) {
				p := client(from, names[0], tag)
				p.become(callers.Leads(target, names[1], service, map[string][]*net.TCPAddr{tag: nil}))
				goes(t, p)
			})
		})
	}
}

// What introduces a cluster leads there by no path that anybody calls, and is made once for all who need it.
func TestIntroduce(t *testing.T) {
	l := newReferenceCache()
	routes := callers.Route("x", "a")
	one := l.withPrewarmRoutes(routes, []string{"b", "c"})
	if again := l.withPrewarmRoutes(routes, []string{"b", "c"}); again != one {
		t.Error("the same is made twice")
	}
	if l.withPrewarmRoutes(one, []string{"b"}) != one {
		t.Error("who is there is introduced again")
	}
	if got := l.of(l.withPrewarmRoutes(one, []string{"d"})); fmt.Sprint(got) != fmt.Sprint(references{clusters: []string{"a"}, prewarmClusters: []string{"b", "c", "d"}}) {
		t.Errorf("it leads to %+v", got)
	}
	for i := range maxReferences + 10 {
		l.withPrewarmRoutes(callers.Route(fmt.Sprint(i), "a"), []string{"b"})
	}
	if l.parsed.Len() > maxReferences || l.prewarming.Len() > maxReferences {
		t.Errorf("%d resources and %d introductions are remembered", l.parsed.Len(), l.prewarming.Len())
	}
}

func TestLeadsNowhere(t *testing.T) {
	l := newReferenceCache()
	for name, r := range map[string]*resource.Resource{
		"no body":    {Name: "x"},
		"a cluster":  callers.Cluster("x"),
		"not routes": {Name: "x", Version: "broken", Body: callers.Route("x", "a").Body},
	} {
		if name == "not routes" {
			r.Body.Value = []byte{255}
		}
		if got := l.of(r); got.routeConfig != "" || got.clusters != nil || got.prewarmClusters != nil {
			t.Errorf("%s leads to %+v", name, got)
		}
		if l.withPrewarmRoutes(r, []string{"b"}) != r {
			t.Errorf("%s introduces somebody", name)
		}
	}
}
