package server

import (
	"slices"
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// prewarmPlan is what a client without a proxy is kept at, until it has met the clusters that it is to be led to. It asks
// for a cluster only once a route names it, and a call that is led there before the client can make it fails.
type prewarmPlan struct {
	// held are the listeners and routes that stay as they are.
	held map[resource.Type]map[string]bool
	// prewarmClusters are clusters that routes introduce.
	prewarmClusters map[string][]string
	// pending says that there are clusters it has not met, whether or not one still waits for that.
	pending bool
	// requeueAt is when time alone changes this.
	requeueAt time.Time
}

// planPrewarm looks at what is to change for a client that asks for clusters by name.
func (l *streamState) planPrewarm(config *resource.Config, now time.Time) prewarmPlan {
	clusters, listeners, routes := &l.types[resource.Cluster], &l.types[resource.Listener], &l.types[resource.Route]
	if !clusters.subscribed || clusters.wildcard {
		return prewarmPlan{}
	}
	a := prewarmPlan{held: map[resource.Type]map[string]bool{resource.Listener: {}, resource.Route: {}}, prewarmClusters: map[string][]string{}}
	for _, known := range routes.known {
		if next := config.Find(resource.Route, known.Name); next != nil && !sameVersion(next, known) {
			l.holdForPrewarm(&a, config, now, resource.Route, known.Name, known, next)
		}
	}
	for _, known := range listeners.known {
		next := config.Find(resource.Listener, known.Name)
		if next == nil || sameVersion(next, known) {
			continue
		}
		from, to := l.references.of(known).routeConfig, l.references.of(next).routeConfig
		if from == "" || from == to {
			continue
		}
		if before, after := routes.known.find(from), config.Find(resource.Route, to); before != nil && after != nil {
			l.holdForPrewarm(&a, config, now, resource.Listener, known.Name, before, after)
		}
	}
	if !a.pending {
		l.prewarmingSince = time.Time{}
		return a
	}
	if l.prewarmingSince.IsZero() {
		l.prewarmingSince = now
	}
	if end := l.prewarmingSince.Add(l.timing.ClientWait); now.Before(end) {
		a.requeueAt = earliest(a.requeueAt, end)
	}
	return a
}

// holdForPrewarm keeps a listener or route as it is while the client is led by some routes and would be by others, unless it has met
// all clusters of these.
func (l *streamState) holdForPrewarm(a *prewarmPlan, config *resource.Config, now time.Time, t resource.Type, name string, before, after *resource.Resource) {
	is, to := l.references.of(before), l.references.of(after)
	var strangers []string
	for _, cluster := range to.clusters {
		if !slices.Contains(is.clusters, cluster) && config.Find(resource.Cluster, cluster) != nil {
			strangers = append(strangers, cluster)
		}
	}
	if len(strangers) == 0 {
		return
	}
	if l.isPrewarmed(before, is, strangers, config) {
		met := l.lastWarmed.Add(l.timing.ClusterWarmup)
		if !now.Before(met) {
			return
		}
		a.requeueAt = earliest(a.requeueAt, met)
	}
	a.pending = true
	if since := earliest(l.prewarmingSince, now); !now.Before(since.Add(l.timing.ClientWait)) {
		return
	}
	a.held[t][name] = true
	for _, cluster := range strangers {
		if !slices.Contains(a.prewarmClusters[before.Name], cluster) {
			a.prewarmClusters[before.Name] = append(a.prewarmClusters[before.Name], cluster)
		}
	}
	slices.Sort(a.prewarmClusters[before.Name])
}

// isPrewarmed says whether the client has acknowledged routes that introduce these clusters, and the clusters.
func (l *streamState) isPrewarmed(routes *resource.Resource, is references, strangers []string, config *resource.Config) bool {
	clusters, endpoints := &l.types[resource.Cluster], &l.types[resource.Endpoint]
	if taken := l.types[resource.Route].acked.find(routes.Name); taken == nil || !sameVersion(taken, routes) {
		return false
	}
	for _, cluster := range strangers {
		if !slices.Contains(is.prewarmClusters, cluster) || clusters.acked.find(cluster) == nil {
			return false
		}
		if config.Find(resource.Endpoint, cluster) != nil && endpoints.acked.find(cluster) == nil {
			return false
		}
	}
	return true
}

// applyTo puts what is held in the place of what comes next, and has routes introduce their guests.
func (a prewarmPlan) applyTo(t resource.Type, next, known list, leads *referenceCache) list {
	if len(a.held[t]) == 0 && (t != resource.Route || len(a.prewarmClusters) == 0) {
		return next
	}
	next = slices.Clone(next)
	for i, r := range next {
		if a.held[t][r.Name] {
			if is := known.find(r.Name); is != nil {
				next[i] = is
			}
		}
		if guests := a.prewarmClusters[r.Name]; t == resource.Route && len(guests) > 0 {
			next[i] = leads.withPrewarmRoutes(next[i], guests)
		}
	}
	return next
}
