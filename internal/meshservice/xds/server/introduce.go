package server

import (
	"slices"
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// arrangement is what a client without a proxy is kept at, until it has met the clusters that it is to be led to. It asks
// for a cluster only once a route names it, and a call that is led there before the client can make it fails.
type arrangement struct {
	// held are the listeners and routes that stay as they are.
	held map[resource.Type]map[string]bool
	// guests are clusters that routes introduce.
	guests map[string][]string
	// strange says that there are clusters it has not met, whether or not one still waits for that.
	strange bool
	// again is when time alone changes this.
	again time.Time
}

// arrange looks at what is to change for a client that asks for clusters by name.
func (l *ledger) arrange(config *resource.Config, now time.Time) arrangement {
	clusters, listeners, routes := &l.pages[resource.Cluster], &l.pages[resource.Listener], &l.pages[resource.Route]
	if !clusters.subscribed || clusters.wildcard {
		return arrangement{}
	}
	a := arrangement{held: map[resource.Type]map[string]bool{resource.Listener: {}, resource.Route: {}}, guests: map[string][]string{}}
	for _, known := range routes.known {
		if next := config.Find(resource.Route, known.Name); next != nil && !equal(next, known) {
			l.hold(&a, config, now, resource.Route, known.Name, known, next)
		}
	}
	for _, known := range listeners.known {
		next := config.Find(resource.Listener, known.Name)
		if next == nil || equal(next, known) {
			continue
		}
		from, to := l.leads.of(known).routes, l.leads.of(next).routes
		if from == "" || from == to {
			continue
		}
		if before, after := routes.known.find(from), config.Find(resource.Route, to); before != nil && after != nil {
			l.hold(&a, config, now, resource.Listener, known.Name, before, after)
		}
	}
	if !a.strange {
		l.introducing = time.Time{}
		return a
	}
	if l.introducing.IsZero() {
		l.introducing = now
	}
	if end := l.introducing.Add(l.pace.Patience); now.Before(end) {
		a.again = earliest(a.again, end)
	}
	return a
}

// hold keeps a listener or route as it is while the client is led by some routes and would be by others, unless it has met
// all clusters of these.
func (l *ledger) hold(a *arrangement, config *resource.Config, now time.Time, t resource.Type, name string, before, after *resource.Resource) {
	is, to := l.leads.of(before), l.leads.of(after)
	var strangers []string
	for _, cluster := range to.clusters {
		if !slices.Contains(is.clusters, cluster) && config.Find(resource.Cluster, cluster) != nil {
			strangers = append(strangers, cluster)
		}
	}
	if len(strangers) == 0 {
		return
	}
	if l.introduces(before, is, strangers, config) {
		met := l.introduced.Add(l.pace.Acquaintance)
		if !now.Before(met) {
			return
		}
		a.again = earliest(a.again, met)
	}
	a.strange = true
	if since := earliest(l.introducing, now); !now.Before(since.Add(l.pace.Patience)) {
		return
	}
	a.held[t][name] = true
	for _, cluster := range strangers {
		if !slices.Contains(a.guests[before.Name], cluster) {
			a.guests[before.Name] = append(a.guests[before.Name], cluster)
		}
	}
	slices.Sort(a.guests[before.Name])
}

// introduces says whether the client has acknowledged routes that introduce these clusters, and the clusters.
func (l *ledger) introduces(routes *resource.Resource, is lead, strangers []string, config *resource.Config) bool {
	clusters, endpoints := &l.pages[resource.Cluster], &l.pages[resource.Endpoint]
	if taken := l.pages[resource.Route].acked.find(routes.Name); taken == nil || !equal(taken, routes) {
		return false
	}
	for _, cluster := range strangers {
		if !slices.Contains(is.guests, cluster) || clusters.acked.find(cluster) == nil {
			return false
		}
		if config.Find(resource.Endpoint, cluster) != nil && endpoints.acked.find(cluster) == nil {
			return false
		}
	}
	return true
}

// keep puts what is held in the place of what comes next, and has routes introduce their guests.
func (a arrangement) keep(t resource.Type, next, known list, leads *leads) list {
	if len(a.held[t]) == 0 && (t != resource.Route || len(a.guests) == 0) {
		return next
	}
	next = slices.Clone(next)
	for i, r := range next {
		if a.held[t][r.Name] {
			if is := known.find(r.Name); is != nil {
				next[i] = is
			}
		}
		if guests := a.guests[r.Name]; t == resource.Route && len(guests) > 0 {
			next[i] = leads.with(next[i], guests)
		}
	}
	return next
}
