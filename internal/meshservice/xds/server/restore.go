package server

import (
	"slices"
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// sparePartings are how many streams of a proxy are remembered beyond those that it has had at once: a process with many
// targets loses all of its streams together, and some of those that return may end before they have told anything.
const sparePartings = 8

// parting is what a client had when its stream ended, by type, and the version that it says so by when it returns.
type parting [4]struct {
	version string
	acked   list
	// unsaid are answers on which it gave no word any more.
	unsaid []flight
}

// parting is what a client has by now. One with a proxy is not remembered: it says itself when it can be led elsewhere.
func (l *ledger) parting() (parting, bool) {
	var p parting
	if clusters := &l.pages[resource.Cluster]; !clusters.subscribed || clusters.wildcard {
		return p, false
	}
	for _, t := range resource.Types() {
		p[t].version, p[t].acked, p[t].unsaid = l.pages[t].version, l.pages[t].acked, slices.Clone(l.pages[t].flights)
	}
	return p, true
}

// had is what the client had of a type under a version, and whether that is known. Where its last word was lost there may be
// several; the oldest is the safest, since from there it is led through everything that came later.
func (p *parting) had(t resource.Type, version string) (list, bool) {
	if p[t].version == version {
		return p[t].acked, true
	}
	for _, f := range p[t].unsaid {
		if f.version == version && f.nonce != "" {
			return f.after, true
		}
	}
	return nil, false
}

// remember a stream that has ended.
func (p *proxy) remember(l *ledger) {
	if one, worth := l.parting(); worth {
		p.partings = append(p.partings, one)
		p.partings = slices.Delete(p.partings, 0, max(0, len(p.partings)-p.most-sparePartings))
	}
}

// recognize finds the stream that a client returns from: the last one in which it was sent that version, and one of the
// resources it asks for. That stream may not be known to have ended yet.
func (p *proxy) recognize(of *session, t resource.Type, version string, asks func(string) bool) *parting {
	found := slices.Clone(p.partings)
	for _, other := range p.sessions {
		if one, worth := other.ledger.parting(); worth && other != of {
			found = append(found, one)
		}
	}
	for i := range slices.Backward(found) {
		if had, known := found[i].had(t, version); known && len(had.keep(asks)) > 0 {
			one := found[i]
			return &one
		}
	}
	return nil
}

// restore what a client has of a type from an earlier stream, which it names a version of.
func (s *session) restore(t resource.Type, version string) {
	l, page := &s.ledger, &s.ledger.pages[t]
	if version == "" || page.wildcard {
		return
	}
	if l.returned.IsZero() {
		if l.past = s.proxy.recognize(s, t, version, page.asks); l.past != nil {
			l.returned = time.Now()
		}
	}
	if l.past != nil {
		if had, known := l.past.had(t, version); known {
			page.known = had.keep(page.asks)
			page.acked = page.known
		}
	}
	if t == resource.Cluster {
		page.known = page.known.with(standIns(page, s.proxy.config))
		page.acked = page.known
	}
}

// standIns are for clusters that a client still calls, and nobody knows any more. An answer without them would take them away
// before the client is led elsewhere, and their endpoints it has.
func standIns(page *page, config *resource.Config) list {
	var all list
	for name := range page.names {
		if page.known.find(name) != nil || config.Find(resource.Cluster, name) != nil {
			continue
		}
		cluster, err := build.Cluster(name, model.GRPC, build.Settings{})
		if r, err := build.Seal(name, cluster, err); err == nil {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, byName)
	return all
}

// returns says that a client which was recognized is still telling what it has, so that it is not known yet where it may be led.
// Once it has told all, or had the time to, nothing of the past is needed.
func (l *ledger) returns(now time.Time) (bool, time.Time) {
	if l.past == nil {
		return false, time.Time{}
	}
	waits, told, end := false, true, l.returned.Add(l.pace.Patience)
	for _, t := range resource.Types() {
		if !l.pages[t].subscribed {
			waits, told = waits || len(l.past[t].acked) > 0, false
		}
	}
	switch {
	case told || !now.Before(end):
		l.past = nil
	case waits:
		return true, end
	}
	return false, time.Time{}
}
