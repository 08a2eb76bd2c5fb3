package clusterdir

import (
	"errors"
	"fmt"
)

// Wish is what a user asks of a cluster when starting it; what is left zero
// stays as it is.
type Wish struct {
	Profile Profile
	Nodes   int
	// Port of the API server; 0 gives up one that was asked for before.
	Port *int
}

// Validate refuses what no cluster can be.
func (w Wish) Validate() error {
	switch {
	case w.Profile != "" && w.Profile != Cluster && w.Profile != Hub:
		return fmt.Errorf("unknown --profile %q: it is cluster or hub", w.Profile)
	case w.Nodes < 0:
		return errors.New("--nodes must not be negative")
	case w.Profile == Hub && w.Nodes > 0:
		return errors.New("a hub has no --nodes: nothing runs in it")
	case w.Port != nil && (*w.Port < 0 || *w.Port > 65535):
		return errors.New("--port must be between 0 and 65535")
	}
	return nil
}

// Settle decides what the cluster in the directory is from now on. Its profile
// is said once, at its first start: to be told otherwise later is a mistake,
// not a change. A running cluster is what it is.
func (d Dir) Settle(s Settings, w Wish, running bool) (Settings, error) {
	switch {
	case s.Profile != "" && w.Profile != "" && s.Profile != w.Profile:
		return s, fmt.Errorf("%s holds a %s, not a %s: use another --dir, or `localkube down --dir %s --delete` first", d, s.Profile, w.Profile, d)
	case s.Profile == Hub && w.Nodes > 0:
		return s, fmt.Errorf("%s holds a hub, which has no --nodes: nothing runs in it", d)
	case w.Nodes > 0 && w.Nodes < s.Nodes:
		return s, fmt.Errorf("%s has %d nodes, and none is taken away: `localkube down --dir %s --delete` first", d, s.Nodes, d)
	case running && w.Nodes > s.Nodes:
		return s, fmt.Errorf("the cluster in %s runs with %d node(s): `localkube down --dir %s` before it gets more", d, s.Nodes, d)
	case running && w.Port != nil && *w.Port != 0 && *w.Port != s.Ports.API:
		return s, fmt.Errorf("the cluster in %s runs on port %d: `localkube down --dir %s` before it moves to %d", d, s.Ports.API, d, *w.Port)
	case running:
		return s, nil
	}
	if s.Profile == "" {
		s.Profile = Cluster
		if w.Profile != "" {
			s.Profile = w.Profile
		}
	}
	s.Nodes = max(s.Nodes, w.Nodes)
	if s.Profile == Cluster {
		s.Nodes = max(s.Nodes, 1)
	}
	if w.Port != nil {
		s.PinnedPort = *w.Port != 0
		if s.PinnedPort {
			s.Ports.API = *w.Port
		}
	}
	return s, nil
}
