package server

import (
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// Pace is how long a proxy is given between one step of a change and the next.
type Pace struct {
	// Acquaintance is from when a proxy has acknowledged a new cluster until something leads it there: proxies say that
	// they have a cluster a moment before they can call it, and about one call in thousands fell into that moment.
	Acquaintance time.Duration
	// Farewell is from when a proxy has all that is new until it loses what is old: calls that have begun, and proxies
	// that fetch a cluster only when something leads there, still need it.
	Farewell time.Duration
	// Patience is how long one waits for a client to make itself ready for a cluster that routes introduce, and how long a
	// client is kept waiting for its Dataplane.
	Patience time.Duration
}

// DefaultPace is the usual one.
func DefaultPace() Pace {
	return Pace{Acquaintance: 250 * time.Millisecond, Farewell: 5 * time.Second, Patience: 5 * time.Second}
}

// ledger is what one stream was sent, by type, and what comes next: the new before what leads to it, the old last.
type ledger struct {
	pace  Pace
	pages [4]page
	// restored says that the proxy came with listeners of an earlier stream, which it uses meanwhile.
	restored bool
	// introduced is when it last acknowledged a cluster or endpoints that it had not before, or routes that introduce some.
	introduced time.Time
	// moved is when it had all of the present listeners and routes, and what they lead to.
	moved time.Time
	// introducing is since when a client without a proxy is held back.
	introducing time.Time
	// past is the stream that a client without a proxy returned from, and returned when it did.
	past     *parting
	returned time.Time
	// leads looks into listeners and routes.
	leads *leads
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// offer is what the proxy should know of a type by now, and when to ask again if time alone changes that.
func (l *ledger) offer(t resource.Type, config *resource.Config, arranged arrangement, now time.Time) (list, time.Time) {
	p := &l.pages[t]
	selected := p.selects(config.Of(t))
	if t == resource.Listener || t == resource.Route {
		if open, again := l.open(t, config, now); !open {
			// What it asks for by name and does not have can lead nowhere new from where it is.
			named := selected.strangers(p.known).keep(func(name string) bool { _, asked := p.names[name]; return asked })
			return p.known.with(named), again
		}
	}
	if t == resource.Listener {
		return arranged.keep(t, selected, p.known, l.leads), time.Time{}
	}
	// What it has never taken it does not use.
	old := p.known.strangers(selected).keep(func(name string) bool { return p.acked.find(name) != nil })
	var again time.Time
	if leave := l.moved.Add(l.pace.Farewell); len(old) > 0 && (l.moved.IsZero() || now.Before(leave)) {
		selected = selected.with(old)
		if !l.moved.IsZero() {
			again = leave
		}
	}
	return arranged.keep(t, selected, p.known, l.leads), again
}

// open says whether the proxy may be led to every cluster that it is to have. Only one that is told of all clusters is
// held back: others ask for a cluster once they are led there.
func (l *ledger) open(t resource.Type, config *resource.Config, now time.Time) (bool, time.Time) {
	clusters, endpoints := &l.pages[resource.Cluster], &l.pages[resource.Endpoint]
	switch {
	case !clusters.wildcard, !l.restored && len(l.pages[t].known) == 0:
		return true, time.Time{}
	case len(list(config.Of(resource.Cluster)).strangers(clusters.acked)) > 0, len(endpoints.known.strangers(endpoints.acked)) > 0:
		return false, time.Time{}
	}
	if met := l.introduced.Add(l.pace.Acquaintance); now.Before(met) {
		return false, met
	}
	return true, time.Time{}
}

// keeps says that a proxy that came back is left the listeners that it has: it may not be led elsewhere yet, and what they are
// nobody knows, so that an answer of all would take them away.
func (l *ledger) keeps(config *resource.Config, now time.Time) bool {
	p := &l.pages[resource.Listener]
	if !l.restored || p.greeted || !p.wildcard {
		return false
	}
	open, _ := l.open(resource.Listener, config, now)
	return !open
}

// landed takes the proxy's word on an answer, and says whether there was such an answer.
func (l *ledger) landed(t resource.Type, nonce, against, version string, now time.Time) bool {
	p := &l.pages[t]
	before := p.acked
	if !p.landed(nonce, against, version) {
		return false
	}
	if against != "" {
		return true
	}
	met := (t == resource.Cluster || t == resource.Endpoint) && len(p.acked.strangers(before)) > 0
	if met || (t == resource.Route && !l.introducing.IsZero()) {
		l.introduced = now
	}
	return true
}

// push notes an answer that is about to be sent. A proxy that gets another version of a cluster waits for its endpoints
// anew, so that they are sent again.
func (l *ledger) push(t resource.Type, after, sent list, version string) {
	p := &l.pages[t]
	if leads := t == resource.Listener || t == resource.Route; leads && len(sent) > 0 {
		// A proxy asks for the routes of a listener only when it has that one: until it has them too, it has not moved.
		l.moved = time.Time{}
	}
	if t == resource.Cluster {
		var changed list
		sent.walk(p.known, func(mine, known *resource.Resource) bool {
			if known != nil && !equal(mine, known) {
				changed = append(changed, mine)
			}
			return true
		})
		l.pages[resource.Endpoint].forget(changed)
	}
	p.push(after, sent, version)
}

// settle notes whether the proxy has acknowledged all that it is to have of a type; its watch must be open.
func (l *ledger) settle(t resource.Type, config *resource.Config) {
	p := &l.pages[t]
	p.settled = ""
	selected := p.selects(config.Of(t))
	switch {
	case p.refusal != nil, len(selected.without(p.acked)) > 0:
	case t == resource.Listener && (!p.answered || len(p.acked) > len(selected)):
	default:
		p.settled = config.Version(t)
	}
}

// retarget notes that another configuration is to be had.
func (l *ledger) retarget(from, to *resource.Config) {
	for _, t := range resource.Types() {
		l.pages[t].retarget(to.Version(t))
		if leads := t == resource.Listener || t == resource.Route; leads && from.Version(t) != to.Version(t) {
			l.moved = time.Time{}
		}
	}
}

// current says whether the proxy has acknowledged all that it asks for.
func (l *ledger) current(config *resource.Config) bool {
	for _, t := range resource.Types() {
		if p := &l.pages[t]; p.subscribed && p.settled != config.Version(t) {
			return false
		}
	}
	return l.pages[resource.Listener].subscribed
}

// refused is the proxy's first word against its configuration.
func (l *ledger) refused() string {
	for _, t := range resource.Types() {
		if refusal := l.pages[t].refusal; refusal != nil {
			return refusal.message
		}
	}
	return ""
}
