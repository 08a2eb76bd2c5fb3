package server

import (
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Timing is how long a proxy is given between one step of a change and the next.
type Timing struct {
	// ClusterWarmup is from when a proxy has acknowledged a new cluster until something leads it there: proxies say that
	// they have a cluster a moment before they can call it, and about one call in thousands fell into that moment.
	ClusterWarmup time.Duration
	// RemovalDelay is from when a proxy has all that is new until it loses what is old: calls that have begun, and proxies
	// that fetch a cluster only when something leads there, still need it.
	RemovalDelay time.Duration
	// ClientWait is how long one waits for a client to make itself ready for a cluster that routes introduce, and how long a
	// client is kept waiting for its Dataplane.
	ClientWait time.Duration
}

// DefaultTiming is the usual one.
func DefaultTiming() Timing {
	return Timing{ClusterWarmup: 250 * time.Millisecond, RemovalDelay: 5 * time.Second, ClientWait: 5 * time.Second}
}

// streamState is what one stream was sent, by type, and what comes next: the new before what leads to it, the old last.
type streamState struct {
	timing Timing
	types  [4]typeState
	// hadListeners says that the proxy came with listeners of an earlier stream, which it uses meanwhile.
	hadListeners bool
	// lastWarmed is when it last acknowledged a cluster or endpoints that it had not before, or routes that introduce some.
	lastWarmed time.Time
	// convergedAt is when it had all of the present listeners and routes, and what they lead to.
	convergedAt time.Time
	// prewarmingSince is since when a client without a proxy is held back.
	prewarmingSince time.Time
	// previous is the stream that a client without a proxy returned from, and returned when it did.
	previous  *closedStream
	resumedAt time.Time
	// references looks into listeners and routes.
	references *referenceCache
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// nextResources is what the proxy should know of a type by now, and when to ask again if time alone changes that.
func (l *streamState) nextResources(t resource.Type, config *resource.Config, arranged prewarmPlan, now time.Time) (list, time.Time) {
	p := &l.types[t]
	selected := p.subscribedOf(config.Of(t))
	if t == resource.Listener || t == resource.Route {
		if open, again := l.clustersWarmed(t, config, now); !open {
			// What it asks for by name and does not have can lead nowhere new from where it is.
			named := selected.missingIn(p.known).filter(func(name string) bool { _, asked := p.names[name]; return asked })
			return p.known.union(named), again
		}
	}
	if t == resource.Listener {
		return arranged.applyTo(t, selected, p.known, l.references), time.Time{}
	}
	// What it has never taken it does not use.
	old := p.known.missingIn(selected).filter(func(name string) bool { return p.acked.find(name) != nil })
	var again time.Time
	if leave := l.convergedAt.Add(l.timing.RemovalDelay); len(old) > 0 && (l.convergedAt.IsZero() || now.Before(leave)) {
		selected = selected.union(old)
		if !l.convergedAt.IsZero() {
			again = leave
		}
	}
	return arranged.applyTo(t, selected, p.known, l.references), again
}

// clustersWarmed says whether the proxy may be led to every cluster that it is to have. Only one that is told of all clusters is
// held back: others ask for a cluster once they are led there.
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

// keepsListeners says that a proxy that came back is left the listeners that it has: it may not be led elsewhere yet, and what they are
// nobody knows, so that an answer of all would take them away.
func (l *streamState) keepsListeners(config *resource.Config, now time.Time) bool {
	p := &l.types[resource.Listener]
	if !l.hadListeners || p.responded || !p.wildcard {
		return false
	}
	open, _ := l.clustersWarmed(resource.Listener, config, now)
	return !open
}

// acknowledge takes the proxy's word on an answer, and says whether there was such an answer.
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

// recordResponse notes an answer that is about to be sent. A proxy that gets another version of a cluster waits for its endpoints
// anew, so that they are sent again.
func (l *streamState) recordResponse(t resource.Type, after, sent list, version string) {
	p := &l.types[t]
	if leads := t == resource.Listener || t == resource.Route; leads && len(sent) > 0 {
		// A proxy asks for the routes of a listener only when it has that one: until it has them too, it has not moved.
		l.convergedAt = time.Time{}
	}
	if t == resource.Cluster {
		var changed list
		sent.walk(p.known, func(mine, known *resource.Resource) bool {
			if known != nil && !sameVersion(mine, known) {
				changed = append(changed, mine)
			}
			return true
		})
		l.types[resource.Endpoint].resend(changed)
	}
	p.recordResponse(after, sent, version)
}

// updateCurrentVersion notes whether the proxy has acknowledged all that it is to have of a type; its watch must be open.
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

// configChanged notes that another configuration is to be had.
func (l *streamState) configChanged(from, to *resource.Config) {
	for _, t := range resource.Types() {
		l.types[t].retryRejected(to.Version(t))
		if leads := t == resource.Listener || t == resource.Route; leads && from.Version(t) != to.Version(t) {
			l.convergedAt = time.Time{}
		}
	}
}

// isCurrent says whether the proxy has acknowledged all that it asks for.
func (l *streamState) isCurrent(config *resource.Config) bool {
	for _, t := range resource.Types() {
		if p := &l.types[t]; p.subscribed && p.currentVersion != config.Version(t) {
			return false
		}
	}
	return l.types[resource.Listener].subscribed
}

// nackMessage is the proxy's first word against its configuration.
func (l *streamState) nackMessage() string {
	for _, t := range resource.Types() {
		if refusal := l.types[t].nack; refusal != nil {
			return refusal.message
		}
	}
	return ""
}
