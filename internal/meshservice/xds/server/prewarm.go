package server

import (
	"slices"
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// prewarmPlan holds back listeners and routes of a proxyless client until it can call their new clusters. Such a client
// subscribes to a cluster only once a route refers to it, and calls fail until the cluster is ready.
type prewarmPlan struct {
	// held are the listeners and routes that keep their version.
	held map[resource.Type]map[string]bool
	// prewarmClusters are the clusters to prewarm, by route configuration.
	prewarmClusters map[string][]string
	// pending says that clusters are not prewarmed, whether or not a resource is still held for them.
	pending bool
	// requeueAt is when only time changes the plan.
	requeueAt time.Time
}

// planPrewarm plans the prewarming of clusters for a client that subscribes to clusters by name.
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

// holdForPrewarm holds a listener or route at its version until all new clusters of its routes are prewarmed.
func (l *streamState) holdForPrewarm(a *prewarmPlan, config *resource.Config, now time.Time, t resource.Type, name string, before, after *resource.Resource) {
	is, to := l.references.of(before), l.references.of(after)
	var newClusters []string
	for _, cluster := range to.clusters {
		if !slices.Contains(is.clusters, cluster) && config.Find(resource.Cluster, cluster) != nil {
			newClusters = append(newClusters, cluster)
		}
	}
	if len(newClusters) == 0 {
		return
	}
	if l.isPrewarmed(before, is, newClusters, config) {
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
	for _, cluster := range newClusters {
		if !slices.Contains(a.prewarmClusters[before.Name], cluster) {
			a.prewarmClusters[before.Name] = append(a.prewarmClusters[before.Name], cluster)
		}
	}
	slices.Sort(a.prewarmClusters[before.Name])
}

// isPrewarmed says whether the client has acknowledged the prewarm routes and the clusters.
func (l *streamState) isPrewarmed(routes *resource.Resource, is references, newClusters []string, config *resource.Config) bool {
	clusters, endpoints := &l.types[resource.Cluster], &l.types[resource.Endpoint]
	if taken := l.types[resource.Route].acked.find(routes.Name); taken == nil || !sameVersion(taken, routes) {
		return false
	}
	for _, cluster := range newClusters {
		if !slices.Contains(is.prewarmClusters, cluster) || clusters.acked.find(cluster) == nil {
			return false
		}
		if config.Find(resource.Endpoint, cluster) != nil && endpoints.acked.find(cluster) == nil {
			return false
		}
	}
	return true
}

// applyTo replaces held resources by their known version, and adds prewarm routes.
func (a prewarmPlan) applyTo(t resource.Type, next, known list, cache *referenceCache) list {
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
		if clusters := a.prewarmClusters[r.Name]; t == resource.Route && len(clusters) > 0 {
			next[i] = cache.withPrewarmRoutes(next[i], clusters)
		}
	}
	return next
}
