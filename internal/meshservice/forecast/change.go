package forecast

import (
	"cmp"
	"maps"
	"slices"
)

// Action is how a listener or cluster changes.
type Action string

// The actions.
const (
	Appears    Action = "appears"
	Disappears Action = "disappears"
	Changes    Action = "changes"
)

// Kind is the kind of a change.
type Kind string

// The kinds. A listener goes by what a client dials.
const (
	Listener Kind = "listener"
	Cluster  Kind = "cluster"
)

// Endpoint is an endpoint of a cluster.
type Endpoint struct {
	Address string `json:"address"`
	Zone    string `json:"zone"`
	// Priority is Envoy's: higher ones are used if lower ones cannot be.
	Priority uint32 `json:"priority,omitempty"`
}

func compareEndpoints(a, b Endpoint) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Address, b.Address))
}

// Side is one side of a change.
type Side struct {
	// Destinations are those of a listener.
	Destinations []string `json:"destinations,omitempty"`
	// Zones have endpoints of priority 0, Fallback others.
	Zones    []string `json:"zones"`
	Fallback []string `json:"fallback,omitempty"`
	// Endpoints are those of a cluster.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
}

// Change is a change of a listener or cluster of a proxy.
type Change struct {
	Action Action `json:"action"`
	Kind   Kind   `json:"kind"`
	Name   string `json:"name"`
	From   *Side  `json:"from,omitempty"`
	To     *Side  `json:"to,omitempty"`
	// Settings says that timeouts, retries, limits or rules change.
	Settings bool `json:"settings,omitempty"`

	// from and to are the clusters of a listener.
	from, to []string
}

// Moves says whether calls go to other zones or another destination.
func (c Change) Moves() bool {
	return c.Action == Changes && (!slices.Equal(c.From.Destinations, c.To.Destinations) ||
		!slices.Equal(c.From.Zones, c.To.Zones) || !slices.Equal(c.From.Fallback, c.To.Fallback))
}

// compare returns the changes between two views of a proxy: listeners before clusters, and changed before removed before
// added ones.
func compare(before, after proxyView) []Change {
	changes := slices.Concat([]Change{}, compareListeners(before, after), compareClusters(before, after))
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(rank(a.Action), rank(b.Action)), cmp.Compare(a.Name, b.Name))
	})
	return changes
}

func rank(a Action) int { return slices.Index([]Action{Changes, Disappears, Appears}, a) }

// forEachName visits each name of either side.
func forEachName[V any](before, after map[string]V, each func(name string, was, is *V)) {
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	at := func(side map[string]V, name string) *V {
		if v, ok := side[name]; ok {
			return &v
		}
		return nil
	}
	for _, name := range names {
		each(name, at(before, name), at(after, name))
	}
}

func action[V any](was, is *V) Action {
	switch {
	case was == nil:
		return Appears
	case is == nil:
		return Disappears
	default:
		return Changes
	}
}

func compareListeners(before, after proxyView) []Change {
	var changes []Change
	forEachName(before.calls, after.calls, func(name string, was, is *call) {
		c := Change{Kind: Listener, Name: name, Action: action(was, is)}
		if was != nil {
			c.From, c.from = before.sideOf(was.clusters), was.clusters
		}
		if is != nil {
			c.To, c.to = after.sideOf(is.clusters), is.clusters
		}
		c.Settings = c.Action == Changes && slices.Equal(c.from, c.to) && was.settings != is.settings
		if c.Action != Changes || c.Settings || c.Moves() {
			changes = append(changes, c)
		}
	})
	return changes
}

func (s proxyView) sideOf(clusters []string) *Side {
	side := s.zonesOf(clusters)
	side.Destinations = destinationNames(clusters)
	return side
}

func compareClusters(before, after proxyView) []Change {
	var changes []Change
	forEachName(before.clusters, after.clusters, func(name string, was, is *cluster) {
		c := Change{Kind: Cluster, Name: name, Action: action(was, is)}
		if was != nil {
			c.From = before.zonesOf([]string{name})
			c.From.Endpoints = was.endpoints
		}
		if is != nil {
			c.To = after.zonesOf([]string{name})
			c.To.Endpoints = is.endpoints
		}
		c.Settings = c.Action == Changes && was.settings != is.settings
		if c.Action != Changes || c.Settings || !slices.Equal(was.endpoints, is.endpoints) {
			changes = append(changes, c)
		}
	})
	return changes
}
