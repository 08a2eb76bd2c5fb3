package publish

import (
	"maps"
	"sync"
)

// sent remembers which consumers of each mesh are switched in what proxies were last given. What is asked for while the engine
// works may be in the result already; it is told one round later, never too early.
type sent struct {
	mu      sync.Mutex
	wanted  map[string]map[string]bool
	reached map[string]map[string]bool
}

func (s *sent) ask(mesh string, consumers map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted == nil {
		s.wanted, s.reached = map[string]map[string]bool{}, map[string]map[string]bool{}
	}
	s.wanted[mesh] = consumers
}

func (s *sent) asked() map[string]map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.wanted)
}

func (s *sent) done(mesh string, consumers map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, still := s.wanted[mesh]; still {
		s.reached[mesh] = consumers
	}
}

func (s *sent) forget(mesh string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wanted, mesh)
	delete(s.reached, mesh)
}

func (s *sent) of(mesh string) (map[string]bool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	consumers, ok := s.reached[mesh]
	return consumers, ok
}
