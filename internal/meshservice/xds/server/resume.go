package server

import (
	"slices"
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// extraClosedStreams is how many closed streams are remembered beyond the most that were open at once: a process loses all
// of its streams together, and resumed ones may close again before they have subscribed.
const extraClosedStreams = 8

// closedStream is what a proxyless client had, by type, when its stream closed, with the version that it sends when it
// resumes.
type closedStream [4]typeState

// closedStream returns the state to resume from. Clients with a wildcard subscription need none: their ACKs say when they
// are ready.
func (l *streamState) closedStream() (closedStream, bool) {
	var p closedStream
	if clusters := &l.types[resource.Cluster]; !clusters.subscribed || clusters.wildcard {
		return p, false
	}
	for _, t := range resource.Types() {
		p[t] = typeState{version: l.types[t].version, acked: l.types[t].acked, responses: slices.Clone(l.types[t].responses)}
	}
	return p, true
}

// resourcesAt returns the resources that the client had at a version, and whether that is known. After a lost ACK several
// match; the oldest is the safest, since every later change is sent again.
func (p *closedStream) resourcesAt(t resource.Type, version string) (list, bool) {
	if p[t].version == version {
		return p[t].acked, true
	}
	for _, f := range p[t].responses {
		if f.version == version && f.nonce != "" {
			return f.after, true
		}
	}
	return nil, false
}

// rememberClosed remembers a closed stream.
func (p *proxy) rememberClosed(l *streamState) {
	if one, worth := l.closedStream(); worth {
		p.closedStreams = append(p.closedStreams, one)
		p.closedStreams = slices.Delete(p.closedStreams, 0, max(0, len(p.closedStreams)-p.maxSessions-extraClosedStreams))
	}
}

// findPreviousStream finds the stream that a client resumes: the last one that was sent this version and a subscribed
// resource. It may still be open here.
func (p *proxy) findPreviousStream(of *session, t resource.Type, version string, asks func(string) bool) *closedStream {
	found := slices.Clone(p.closedStreams)
	for _, other := range p.sessions {
		if one, worth := other.state.closedStream(); worth && other != of {
			found = append(found, one)
		}
	}
	for i := range slices.Backward(found) {
		if had, known := found[i].resourcesAt(t, version); known && len(had.filter(asks)) > 0 {
			return &found[i]
		}
	}
	return nil
}

// resume restores what the client has of a type from an earlier stream, by its version.
func (s *session) resume(t resource.Type, version string) {
	l, p := &s.state, &s.state.types[t]
	if version == "" || p.wildcard {
		return
	}
	if l.resumedAt.IsZero() {
		if l.previous = s.proxy.findPreviousStream(s, t, version, p.isSubscribed); l.previous != nil {
			l.resumedAt = time.Now()
		}
	}
	if l.previous != nil {
		if had, known := l.previous.resourcesAt(t, version); known {
			p.known = had.filter(p.isSubscribed)
			p.acked = p.known
		}
	}
	if t == resource.Cluster {
		p.known = p.known.union(placeholderClusters(p, s.proxy.config))
		p.acked = p.known
	}
}

// placeholderClusters stand for subscribed clusters that no longer exist. A response without them would delete clusters
// that the client still calls.
func placeholderClusters(p *typeState, config *resource.Config) list {
	var all list
	for name := range p.names {
		if p.known.find(name) != nil || config.Find(resource.Cluster, name) != nil {
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

// isResuming says that a resuming client has not yet sent all of its subscriptions. After that, or after a timeout, the
// previous stream is dropped.
func (l *streamState) isResuming(now time.Time) (bool, time.Time) {
	if l.previous == nil {
		return false, time.Time{}
	}
	waits, complete, end := false, true, l.resumedAt.Add(l.timing.ClientWait)
	for _, t := range resource.Types() {
		if !l.types[t].subscribed {
			waits, complete = waits || len(l.previous[t].acked) > 0, false
		}
	}
	switch {
	case complete || !now.Before(end):
		l.previous = nil
	case waits:
		return true, end
	}
	return false, time.Time{}
}
