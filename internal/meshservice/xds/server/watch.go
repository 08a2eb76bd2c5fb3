package server

import (
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// watch is a request that waits for an answer.
type watch interface {
	// respond has those resources that bring the proxy from what it knows to what it should know; nil if it need not be
	// told anything. The second result is what is in it.
	respond(t resource.Type, p *typeState, next list, version string) (func() bool, list)
}

// trySend puts a message into a channel, which has room: go-control-plane empties it before it opens a watch anew.
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

// sotwWatch is one of the state of the world.
type sotwWatch struct {
	request *discovery.DiscoveryRequest
	to      chan cache.Response
}

// Clusters and listeners are sent all at once, and those left out are gone. Of the others only what has changed is sent, but for
// the first answer, which a client that has returned waits for.
func (w *sotwWatch) respond(t resource.Type, p *typeState, next list, version string) (func() bool, list) {
	sent, whole := next, t == resource.Cluster || t == resource.Listener
	switch {
	case whole && p.responded && next.equals(p.known):
		return nil, nil
	case !whole && p.responded:
		sent = next.changedFrom(p.known)
	}
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

// deltaWatch is one of what has changed.
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
		// Not nil, since go-control-plane writes into it.
		NextVersionMap: map[string]string{},
		DeltaDiscoveryResponse: &discovery.DeltaDiscoveryResponse{
			SystemVersionInfo: version, TypeUrl: t.URL(), Resources: resources, RemovedResources: removed,
		},
	}), sent
}

// listOfVersions are the resources that a proxy says it has from an earlier stream.
func listOfVersions(versions map[string]string) list {
	all := make(list, 0, len(versions))
	for name, version := range versions {
		all = append(all, &resource.Resource{Name: name, Version: version})
	}
	slices.SortFunc(all, byName)
	return all
}
