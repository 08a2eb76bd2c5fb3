package server

import (
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Timing holds the delays between the steps of a configuration change.
type Timing struct {
	// ClusterWarmup is the delay between the ACK of a new cluster and the first route to it: a proxy acknowledges a cluster
	// a moment before it can call it.
	ClusterWarmup time.Duration
	// RemovalDelay is the delay between the ACK of new resources and the removal of old ones, which calls in progress still
	// need.
	RemovalDelay time.Duration
	// ClientWait is how long to wait for a proxyless client to prewarm a cluster, and how long a stream waits for its
	// Dataplane.
	ClientWait time.Duration
}

// DefaultTiming returns the delays used in production.
func DefaultTiming() Timing {
	return Timing{ClusterWarmup: 250 * time.Millisecond, RemovalDelay: 5 * time.Second, ClientWait: 5 * time.Second}
}

// streamState tracks, by type, what one stream was sent, and decides what to send next: new clusters before the routes to
// them, removals last.
type streamState struct {
	timing Timing
	types  [4]typeState
	// hadListeners says that the proxy still uses listeners of an earlier stream.
	hadListeners bool
	// lastWarmed is when the proxy last acknowledged a new cluster, new endpoints or prewarm routes.
	lastWarmed time.Time
	// convergedAt is when the proxy had acknowledged the current listeners and routes and all that they refer to.
	convergedAt time.Time
	// prewarmingSince is when a proxyless client began to prewarm clusters.
	prewarmingSince time.Time
	// resumedAt is when a proxy reconnected that has resources of an earlier stream, and previous that stream if this process
	// served it. Restored says that those resources are known, as far as they can be.
	resumedAt time.Time
	previous  *closedStream
	restored  bool
	// guessed is how many of those resources were made up from their names.
	guessed int
	// delta says that the stream is incremental.
	delta bool
	// references caches what listeners and routes refer to.
	references *referenceCache
}

// refersToClusters says whether resources of a type are sent after the clusters that they refer to.
func refersToClusters(t resource.Type) bool { return t == resource.Listener || t == resource.Route }

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// nextResources returns the resources of a type to send now, and when to look again if only time changes that.
func (l *streamState) nextResources(t resource.Type, config *resource.Config, prewarm prewarmPlan, now time.Time) (list, time.Time) {
	p := &l.types[t]
	selected := p.subscribedOf(config.Of(t))
	if refersToClusters(t) {
		if open, again := l.clustersWarmed(t, config, now); !open {
			// A missing resource that is subscribed by name cannot divert existing traffic.
			named := selected.missingIn(p.known).filter(func(name string) bool { _, asked := p.names[name]; return asked })
			return p.known.union(named), again
		}
	}
	if t == resource.Listener {
		return prewarm.applyTo(t, selected, p.known, l.references), time.Time{}
	}
	// Only acknowledged resources are in use.
	old := p.known.missingIn(selected).filter(func(name string) bool { return p.acked.find(name) != nil })
	var again time.Time
	if leave := l.convergedAt.Add(l.timing.RemovalDelay); len(old) > 0 && (l.convergedAt.IsZero() || now.Before(leave)) {
		selected = selected.union(old)
		if !l.convergedAt.IsZero() {
			again = leave
		}
	}
	return prewarm.applyTo(t, selected, p.known, l.references), again
}

// clustersWarmed says whether routes may refer to every cluster of the configuration. It holds back only wildcard
// subscribers: other clients subscribe to a cluster once a route refers to it.
func (l *streamState) clustersWarmed(t resource.Type, config *resource.Config, now time.Time) (bool, time.Time) {
	clusters, endpoints := &l.types[resource.Cluster], &l.types[resource.Endpoint]
	switch {
	case !clusters.wildcard, !l.hadListeners && len(l.types[t].known) == 0:
		return true, time.Time{}
	case len(list(config.Of(resource.Cluster)).missingIn(clusters.acked)) > 0, len(endpoints.known.missingIn(endpoints.acked)) > 0:
		return false, time.Time{}
	}
	if met := l.lastWarmed.Add(l.timing.ClusterWarmup); now.Before(met) {
		return false, met
	}
	return true, time.Time{}
}

// keepsListeners says that a reconnected proxy keeps its listeners for now: its clusters are not warm, and a wildcard
// response would delete listeners that are unknown here.
func (l *streamState) keepsListeners(config *resource.Config, now time.Time) bool {
	p := &l.types[resource.Listener]
	if !l.hadListeners || p.responded || !p.wildcard {
		return false
	}
	open, _ := l.clustersWarmed(resource.Listener, config, now)
	return !open
}

// acknowledge records an ACK, or a NACK with its message, and says whether the nonce is known.
func (l *streamState) acknowledge(t resource.Type, nonce, against, version string, now time.Time) bool {
	p := &l.types[t]
	before := p.acked
	if !p.acknowledge(nonce, against, version) {
		return false
	}
	if against != "" {
		return true
	}
	met := (t == resource.Cluster || t == resource.Endpoint) && len(p.acked.missingIn(before)) > 0
	if met || (t == resource.Route && !l.prewarmingSince.IsZero()) {
		l.lastWarmed = now
	}
	return true
}

// recordResponse records a response that is about to be sent. A proxy that gets a changed cluster waits for its endpoints
// again, so they are sent again.
func (l *streamState) recordResponse(t resource.Type, after, sent list, version, wire string) {
	p := &l.types[t]
	if refersToClusters(t) && len(sent) > 0 {
		// A proxy subscribes to the routes of a listener after its ACK: until the routes are acknowledged too, it has not converged.
		l.convergedAt = time.Time{}
	}
	if t == resource.Cluster {
		l.types[resource.Endpoint].resend(sent.where(p.known, func(mine, known *resource.Resource) bool {
			return known != nil && !sameVersion(mine, known)
		}))
	}
	p.recordResponse(after, sent, version, wire)
}

// updateCurrentVersion records whether the proxy has acknowledged all subscribed resources of a type; the watch must be
// open.
func (l *streamState) updateCurrentVersion(t resource.Type, config *resource.Config) {
	p := &l.types[t]
	p.currentVersion = ""
	selected := p.subscribedOf(config.Of(t))
	switch {
	case p.nack != nil, len(selected.changedFrom(p.acked)) > 0:
	case t == resource.Listener && (!p.acknowledged || len(p.acked) > len(selected)):
	default:
		p.currentVersion = config.Version(t)
	}
}

// configChanged prepares the state for another configuration.
func (l *streamState) configChanged(from, to *resource.Config) {
	for _, t := range resource.Types() {
		l.types[t].retryRejected(to.Version(t))
		if refersToClusters(t) && from.Version(t) != to.Version(t) {
			l.convergedAt = time.Time{}
		}
	}
}

// isCurrent says whether the proxy has acknowledged everything that it subscribes to.
func (l *streamState) isCurrent(config *resource.Config) bool {
	for _, t := range resource.Types() {
		if p := &l.types[t]; p.subscribed && p.currentVersion != config.Version(t) {
			return false
		}
	}
	return l.types[resource.Listener].subscribed
}

// nackMessage returns the message of the first NACK, if any.
func (l *streamState) nackMessage() string {
	for _, t := range resource.Types() {
		if refusal := l.types[t].nack; refusal != nil {
			return refusal.message
		}
	}
	return ""
}
