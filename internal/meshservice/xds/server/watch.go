package server

import (
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// watch is an open request for one type.
type watch interface {
	// respond returns a function that sends the changes from what the proxy has to next, nil if there are none, and the
	// resources in the response, which the stream adds when it sends.
	respond(t resource.Type, p *typeState, next list, version string) (func() bool, list)
}

// trySend puts a message into a channel with room: go-control-plane empties it before it opens a watch again.
func trySend[M any](to chan M, message M) func() bool {
	return func() bool {
		select {
		case to <- message:
			return true
		default:
			return false
		}
	}
}

// sotwRequests are what go-control-plane is told that a response answers. It needs their type only, and a request with all its
// names would be kept as long as the watch.
var sotwRequests, deltaRequests = requestsByType()

func requestsByType() (sotw []*discovery.DiscoveryRequest, delta []*discovery.DeltaDiscoveryRequest) {
	for _, t := range resource.Types() {
		sotw = append(sotw, &discovery.DiscoveryRequest{TypeUrl: t.URL()})
		delta = append(delta, &discovery.DeltaDiscoveryRequest{TypeUrl: t.URL()})
	}
	return sotw, delta
}

// sotwWatch is a state-of-the-world watch.
type sotwWatch struct {
	to chan cache.Response
}

// respond sends all clusters or listeners, since missing ones are deleted. Of the other types only changes are sent, except
// in the first response, which a reconnected client waits for.
func (w *sotwWatch) respond(t resource.Type, p *typeState, next list, version string) (func() bool, list) {
	sent, whole := next, t == resource.Cluster || t == resource.Listener
	switch {
	case whole && p.responded && next.equals(p.known):
		return nil, nil
	case !whole && p.responded:
		sent = next.changedFrom(p.known)
	}
	// What a reconnected proxy has in an unknown version cannot be sent.
	sent = sent.withBodies()
	if !whole && len(sent) == 0 {
		return nil, nil
	}
	return trySend[cache.Response](w.to, &cache.PassthroughResponse{Request: sotwRequests[t], DiscoveryResponse: &discovery.DiscoveryResponse{
		VersionInfo: version, TypeUrl: t.URL(),
	}}), sent
}

// deltaWatch is an incremental watch.
type deltaWatch struct {
	// named are the resources that the request subscribes to or unsubscribes from.
	named []string
	to    chan cache.DeltaResponse
}

func (w *deltaWatch) respond(t resource.Type, p *typeState, next list, version string) (func() bool, list) {
	sent := next.changedFrom(p.known)
	var removed []string
	for _, r := range p.known.missingIn(next) {
		removed = append(removed, r.Name)
	}
	gone := sets.New(removed...)
	for _, name := range w.named {
		if p.isSubscribed(name) && name != "*" && next.find(name) == nil && !gone.Has(name) {
			gone.Insert(name)
			removed = append(removed, name)
		}
	}
	if len(sent) == 0 && len(removed) == 0 && (p.responded || !p.wildcard) {
		return nil, nil
	}
	return trySend[cache.DeltaResponse](w.to, &cache.DeltaPassthroughResponse{
		DeltaRequest: deltaRequests[t],
		// go-control-plane writes into the map.
		NextVersionMap: map[string]string{},
		DeltaDiscoveryResponse: &discovery.DeltaDiscoveryResponse{
			SystemVersionInfo: version, TypeUrl: t.URL(), RemovedResources: removed,
		},
	}), sent
}

// listOfVersions returns resources by name and version, as a proxy sends them in its first incremental request.
func listOfVersions(versions map[string]string) list {
	all := make(list, 0, len(versions))
	for name, version := range versions {
		all = append(all, &resource.Resource{Name: name, Version: version})
	}
	slices.SortFunc(all, byName)
	return all
}
