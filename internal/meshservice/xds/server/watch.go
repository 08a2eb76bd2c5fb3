package server

import (
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// watch is an open request for one type.
type watch interface {
	// respond returns a function that sends the changes from what the proxy has to next, nil if there are none, and the
	// resources in the response.
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

// sotwWatch is a state-of-the-world watch.
type sotwWatch struct {
	request *discovery.DiscoveryRequest
	to      chan cache.Response
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
	bodies := make([]*anypb.Any, len(sent))
	for i, r := range sent {
		bodies[i] = r.Body
	}
	return trySend[cache.Response](w.to, &cache.PassthroughResponse{Request: w.request, DiscoveryResponse: &discovery.DiscoveryResponse{
		VersionInfo: version, TypeUrl: t.URL(), Resources: bodies,
	}}), sent
}

// deltaWatch is an incremental watch.
type deltaWatch struct {
	request *discovery.DeltaDiscoveryRequest
	to      chan cache.DeltaResponse
}

func (w *deltaWatch) respond(t resource.Type, p *typeState, next list, version string) (func() bool, list) {
	sent := next.changedFrom(p.known)
	var removed []string
	for _, r := range p.known.missingIn(next) {
		removed = append(removed, r.Name)
	}
	for _, name := range slices.Concat(w.request.GetResourceNamesSubscribe(), w.request.GetResourceNamesUnsubscribe()) {
		if p.isSubscribed(name) && name != "*" && next.find(name) == nil && !slices.Contains(removed, name) {
			removed = append(removed, name)
		}
	}
	if len(sent) == 0 && len(removed) == 0 && (p.responded || !p.wildcard) {
		return nil, nil
	}
	resources := make([]*discovery.Resource, len(sent))
	for i, r := range sent {
		resources[i] = &discovery.Resource{Name: r.Name, Version: r.Version, Resource: r.Body}
	}
	return trySend[cache.DeltaResponse](w.to, &cache.DeltaPassthroughResponse{
		DeltaRequest: w.request,
		// go-control-plane writes into the map.
		NextVersionMap: map[string]string{},
		DeltaDiscoveryResponse: &discovery.DeltaDiscoveryResponse{
			SystemVersionInfo: version, TypeUrl: t.URL(), Resources: resources, RemovedResources: removed,
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
