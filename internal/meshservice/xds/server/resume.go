package server

import (
	"maps"
	"slices"
	"time"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/build"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// A proxy that reconnects has resources of an earlier stream, and may have got them from a control plane that is gone. What
// it says of them are a version by type, and the names of endpoints and routes, of which those of endpoints are the names of
// its clusters. Its clusters have to stay until it has listeners and routes that do not lead there.

// extraClosedStreams is how many closed streams are remembered beyond the most that were open at once: a process loses all
// of its streams together, and resumed ones may close again before they have subscribed.
const extraClosedStreams = 8

// maxRememberedGuesses is how many resources of a closed stream may be made up from the names that its client subscribed to: nobody
// else shares these, and the client chooses how many there are.
const maxRememberedGuesses = 256

// noResources is the version of a proxy that has no resources of a type.
var noResources = resource.Digest(nil)

// hasResources says whether a proxy that reconnects with this version has resources of the type.
func hasResources(version string) bool { return version != "" && version != noResources }

// closedStream is what a client had, by type, when its stream closed, with the version that it sends when it resumes.
type closedStream [4]typeState

// closedStream returns the state to resume from. An incremental client needs none: it says what it has.
func (l *streamState) closedStream() (closedStream, bool) {
	var p closedStream
	if l.delta || !l.types[resource.Cluster].subscribed || l.guessed > maxRememberedGuesses {
		return p, false
	}
	for _, t := range resource.Types() {
		p[t] = typeState{wire: l.types[t].wire, acked: l.types[t].acked, responses: slices.Clone(l.types[t].responses)}
	}
	return p, true
}

// resourcesAt returns the resources that the client had at a version, and whether that is known. After a lost ACK several
// match; the oldest is the safest, since every later change is sent again.
func (p *closedStream) resourcesAt(t resource.Type, version string) (list, bool) {
	if p[t].wire == version {
		return p[t].acked, true
	}
	for _, f := range p[t].responses {
		if f.wire == version && f.nonce != "" {
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

// resume records the version that a client has of a type from an earlier stream.
func (s *session) resume(t resource.Type, version string) {
	l, p := &s.state, &s.state.types[t]
	if !hasResources(version) {
		return
	}
	p.resumes = version
	if l.resumedAt.IsZero() {
		l.resumedAt = time.Now()
	}
	switch {
	case l.restored: // it subscribes to the type late
		s.restoreType(t)
	case l.previous == nil:
		l.previous = s.proxy.findPreviousStream(s, t, version, p.isSubscribed)
	}
}

// isResuming says that a resuming client has not yet sent all subscriptions that say what it has: nothing is sent to it until
// then, or until a timeout.
func (s *session) isResuming(now time.Time) (bool, time.Time) {
	l := &s.state
	if l.resumedAt.IsZero() || l.restored {
		return false, time.Time{}
	}
	lacking := func(t resource.Type) bool { return !l.types[t].subscribed && s.mayHave(t) }
	if end := l.resumedAt.Add(l.timing.ClientWait); now.Before(end) && slices.ContainsFunc(resource.Types(), lacking) {
		return true, end
	}
	s.restore()
	return false, time.Time{}
}

// mayHave says whether it matters that a resuming client may have resources of a type to which it has not subscribed.
func (s *session) mayHave(t resource.Type) bool {
	l, clusters := &s.state, &s.state.types[resource.Cluster]
	switch {
	case l.delta:
		return t == resource.Cluster
	case l.previous != nil:
		return len(l.previous[t].acked) > 0
	case clusters.wildcard:
		return t == resource.Endpoint && clusters.resumes != "" && clusters.resumes != s.proxy.config.Version(resource.Cluster)
	}
	return true
}

// restore restores what the client has of each type. An incremental one has said it.
func (s *session) restore() {
	s.state.restored = true
	for _, t := range resource.Types() {
		if s.state.types[t].resumes != "" {
			s.restoreType(t)
		}
	}
	s.state.previous = nil
}

// restoreType restores what the client has of a type: from an earlier stream of this process, from the configuration if that
// has its version, or else from the names that it subscribes to.
func (s *session) restoreType(t resource.Type) {
	l, p := &s.state, &s.state.types[t]
	had, known := list(nil), false
	if l.previous != nil {
		had, known = l.previous.resourcesAt(t, p.resumes)
		had = had.filter(p.isSubscribed)
	}
	if selected := p.subscribedOf(s.proxy.config.Of(t)); !known && resource.Digest(selected) == p.resumes {
		had, known = selected, true
	}
	switch {
	case t == resource.Cluster && (!known || !p.wildcard):
		had = had.union(s.retiredClusters(had))
	case !known:
		had = s.guess(t)
	}
	p.known, p.acked = had, had
}

// guess returns what a client has of a type in an unknown version, by the names that it subscribes to.
func (s *session) guess(t resource.Type) list {
	config, p := s.proxy.config, &s.state.types[t]
	proxyless := !s.state.types[resource.Cluster].wildcard
	var had list
	switch {
	case t == resource.Listener && proxyless:
		return s.guessListeners()
	case t == resource.Route && !proxyless:
		// It has these routes, and nobody knows where they lead: others would divert its calls.
		for name := range p.names {
			had = append(had, &resource.Resource{Name: name})
		}
		s.state.guessed += len(had)
	case t == resource.Route:
		had = slices.Concat(p.subscribedOf(config.Of(t)), s.lookup(t, p.names).Of(t))
	case t == resource.Endpoint:
		had = s.lookup(t, p.names).Of(t)
	}
	slices.SortFunc(had, byName)
	return had
}

// guessListeners returns the listeners of a proxyless client that its configuration leads by routes to which the client does
// not subscribe: it still has listeners that lead by its own routes.
func (s *session) guessListeners() list {
	config, routes := s.proxy.config, &s.state.types[resource.Route]
	var had list
	before := s.find(routes.names)
	for name := range s.state.types[resource.Listener].names {
		next, was := config.Find(resource.Listener, name), before.Find(resource.Listener, name)
		if next == nil || was == nil || routes.isSubscribed(s.state.references.of(next).routeConfig) {
			continue
		}
		if routes.isSubscribed(s.state.references.of(was).routeConfig) {
			had = append(had, was)
		}
	}
	slices.SortFunc(had, byName)
	return had
}

// retiredClusters returns the clusters of the client that are neither known nor part of its configuration. A response
// without them would delete clusters that the client still calls.
func (s *session) retiredClusters(known list) list {
	clusters, endpoints := &s.state.types[resource.Cluster], &s.state.types[resource.Endpoint]
	names := clusters.names
	if clusters.wildcard {
		names = endpoints.names
	}
	names = maps.Clone(names)
	maps.DeleteFunc(names, func(name string, _ struct{}) bool { return name == "*" || known.find(name) != nil })
	found := s.lookup(resource.Cluster, names)
	var all list
	for name := range names {
		switch r := found.Find(resource.Cluster, name); {
		case s.proxy.config.Find(resource.Cluster, name) != nil:
		case r != nil:
			all = append(all, r)
		default:
			all = append(all, placeholderClusters(name)...)
			s.state.guessed++
		}
	}
	slices.SortFunc(all, byName)
	return all
}

// placeholderClusters stand for a cluster of which only the name is known. It has no endpoints, so Envoy goes on to use the
// one that it has.
func placeholderClusters(name string) list {
	cluster, err := build.Cluster(name, model.GRPC, build.Settings{})
	r, err := build.Marshal(name, cluster, err)
	if err != nil {
		return nil
	}
	return list{r}
}

// lookup finds the resources of clusters of which the configuration has no resource of this type.
func (s *session) lookup(t resource.Type, names map[string]struct{}) *resource.Config {
	missing := maps.Clone(names)
	maps.DeleteFunc(missing, func(name string, _ struct{}) bool { return s.proxy.config.Find(t, name) != nil })
	return s.find(missing)
}

// find finds the resources of clusters.
func (s *session) find(names map[string]struct{}) *resource.Config {
	if s.store != nil && s.store.lookup != nil && len(names) > 0 {
		if found := s.store.lookup(s.proxy.id, slices.Sorted(maps.Keys(names))); found != nil {
			return found
		}
	}
	return resource.NewConfig(nil)
}
