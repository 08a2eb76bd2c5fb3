package server

import (
	"slices"
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// spareClosedStreams are how many streams of a proxy are remembered beyond those that it has had at once: a process with many
// targets loses all of its streams together, and some of those that return may end before they have told anything.
const spareClosedStreams = 8

// closedStream is what a client had when its stream ended, by type, and the version that it says so by when it returns.
type closedStream [4]struct {
	version string
	acked   list
	// unsaid are answers on which it gave no word any more.
	unsaid []inflight
}

// closedStream is what a client has by now. One with a proxy is not remembered: it says itself when it can be led elsewhere.
func (l *streamState) closedStream() (closedStream, bool) {
	var p closedStream
	if clusters := &l.types[resource.Cluster]; !clusters.subscribed || clusters.wildcard {
		return p, false
	}
	for _, t := range resource.Types() {
		p[t].version, p[t].acked, p[t].unsaid = l.types[t].version, l.types[t].acked, slices.Clone(l.types[t].responses)
	}
	return p, true
}

// resourcesAt is what the client had of a type under a version, and whether that is known. Where its last word was lost there may be
// several; the oldest is the safest, since from there it is led through everything that came later.
func (p *closedStream) resourcesAt(t resource.Type, version string) (list, bool) {
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

// rememberClosed a stream that has ended.
func (p *proxy) rememberClosed(l *streamState) {
	if one, worth := l.closedStream(); worth {
		p.closedStreams = append(p.closedStreams, one)
		p.closedStreams = slices.Delete(p.closedStreams, 0, max(0, len(p.closedStreams)-p.maxSessions-spareClosedStreams))
	}
}

// findPreviousStream finds the stream that a client returns from: the last one in which it was sent that version, and one of the
// resources it asks for. That stream may not be known to have ended yet.
func (p *proxy) findPreviousStream(of *session, t resource.Type, version string, asks func(string) bool) *closedStream {
	found := slices.Clone(p.closedStreams)
	for _, other := range p.sessions {
		if one, worth := other.state.closedStream(); worth && other != of {
			found = append(found, one)
		}
	}
	for i := range slices.Backward(found) {
		if had, known := found[i].resourcesAt(t, version); known && len(had.filter(asks)) > 0 {
			one := found[i]
			return &one
		}
	}
	return nil
}

// resume what a client has of a type from an earlier stream, which it names a version of.
func (s *session) resume(t resource.Type, version string) {
	l, page := &s.state, &s.state.types[t]
	if version == "" || page.wildcard {
		return
	}
	if l.resumedAt.IsZero() {
		if l.previous = s.proxy.findPreviousStream(s, t, version, page.isSubscribed); l.previous != nil {
			l.resumedAt = time.Now()
		}
	}
	if l.previous != nil {
		if had, known := l.previous.resourcesAt(t, version); known {
			page.known = had.filter(page.isSubscribed)
			page.acked = page.known
		}
	}
	if t == resource.Cluster {
		page.known = page.known.union(placeholderClusters(page, s.proxy.config))
		page.acked = page.known
	}
}

// placeholderClusters are for clusters that a client still calls, and nobody knows any more. An answer without them would take them away
// before the client is led elsewhere, and their endpoints it has.
func placeholderClusters(page *typeState, config *resource.Config) list {
	var all list
	for name := range page.names {
		if page.known.find(name) != nil || config.Find(resource.Cluster, name) != nil {
			continue
		}
		cluster, err := build.Cluster(name, model.GRPC, build.Settings{})
		if r, err := build.Marshal(name, cluster, err); err == nil {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, byName)
	return all
}

// isResuming says that a client which was recognized is still telling what it has, so that it is not known yet where it may be led.
// Once it has told all, or had the time to, nothing of the past is needed.
func (l *streamState) isResuming(now time.Time) (bool, time.Time) {
	if l.previous == nil {
		return false, time.Time{}
	}
	waits, told, end := false, true, l.resumedAt.Add(l.timing.ClientWait)
	for _, t := range resource.Types() {
		if !l.types[t].subscribed {
			waits, told = waits || len(l.previous[t].acked) > 0, false
		}
	}
	switch {
	case told || !now.Before(end):
		l.previous = nil
	case waits:
		return true, end
	}
	return false, time.Time{}
}
