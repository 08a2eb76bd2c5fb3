package publish

import (
	"maps"
	"sync"
)

// switchedConsumers tracks which consumers are switched in the published configurations. A change during a flush counts
// from the next flush on: never too early.
type switchedConsumers struct {
	mu        sync.Mutex
	wanted    map[string]map[string]bool
	published map[string]map[string]bool
}

func (s *switchedConsumers) setWanted(mesh string, consumers map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted == nil {
		s.wanted, s.published = map[string]map[string]bool{}, map[string]map[string]bool{}
	}
	s.wanted[mesh] = consumers
}

func (s *switchedConsumers) allWanted() map[string]map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.wanted)
}

func (s *switchedConsumers) setPublished(mesh string, consumers map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, still := s.wanted[mesh]; still {
		s.published[mesh] = consumers
	}
}

func (s *switchedConsumers) forget(mesh string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wanted, mesh)
	delete(s.published, mesh)
}

func (s *switchedConsumers) get(mesh string) (map[string]bool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	consumers, ok := s.published[mesh]
	return consumers, ok
}
