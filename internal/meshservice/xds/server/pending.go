package server

import (
	linkedlist "container/list"
	"net"
	"net/netip"
	"sync"

	"google.golang.org/grpc/codes"
)

// pendingSet bounds what is connected and not yet identified. If it is full, the oldest entry of the source address with the
// most entries makes room: a flood from one address displaces itself.
type pendingSet struct {
	limit int
	// maxBytes bounds what all entries have sent, and maxBytesEach what one has.
	maxBytes, maxBytesEach int

	mu      sync.Mutex
	sources map[netip.Prefix]*linkedlist.List
	count   int
	bytes   int
	added   int
}

// pending is an entry of a pendingSet. A nil one is of no set.
type pending struct {
	set    *pendingSet
	source netip.Prefix
	// reject is called, without locks, when the entry has to make room.
	reject func(error)
	// place is nil when the entry is removed.
	place *linkedlist.Element
	added int
	bytes int
}

func newPendingSet(limit, maxBytes, maxBytesEach int) *pendingSet {
	return &pendingSet{limit: limit, maxBytes: maxBytes, maxBytesEach: maxBytesEach, sources: map[netip.Prefix]*linkedlist.List{}}
}

// sourceOf is what an address counts for: in IPv6 its network, of which one host has many addresses.
func sourceOf(address net.Addr) netip.Prefix {
	if address == nil {
		return netip.Prefix{}
	}
	full, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := full.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	source, _ := ip.Prefix(bits)
	return source
}

// add adds an entry, and rejects another if there are too many.
func (s *pendingSet) add(source netip.Prefix, reject func(error)) *pending {
	s.mu.Lock()
	same := s.sources[source]
	if same == nil {
		same = linkedlist.New()
		s.sources[source] = same
	}
	s.added++
	s.count++
	p := &pending{set: s, source: source, reject: reject, added: s.added}
	p.place = same.PushBack(p)
	var displaced *pending
	if s.count > s.limit {
		displaced = s.oldestOfLargest()
		s.drop(displaced)
	}
	s.mu.Unlock()
	if displaced != nil {
		displaced.reject(rejectf(causePending, codes.ResourceExhausted, "more than %d clients are not identified yet: retry later", s.limit))
	}
	return p
}

// oldestOfLargest returns the oldest entry of the source with the most.
func (s *pendingSet) oldestOfLargest() *pending {
	var found *pending
	most := 0
	for _, entries := range s.sources {
		if oldest := entries.Front().Value.(*pending); entries.Len() > most || (entries.Len() == most && oldest.added < found.added) {
			found, most = oldest, entries.Len()
		}
	}
	return found
}

// largest returns the entry that has sent the most.
func (s *pendingSet) largest() *pending {
	var found *pending
	for _, entries := range s.sources {
		for e := entries.Front(); e != nil; e = e.Next() {
			if p := e.Value.(*pending); found == nil || p.bytes > found.bytes {
				found = p
			}
		}
	}
	return found
}

func (s *pendingSet) drop(p *pending) {
	if p.place == nil {
		return
	}
	entries := s.sources[p.source]
	entries.Remove(p.place)
	p.place = nil
	if entries.Len() == 0 {
		delete(s.sources, p.source)
	}
	s.count--
	s.bytes -= p.bytes
}

// remove removes an entry that is identified or gone; again does nothing.
func (p *pending) remove() {
	if p == nil {
		return
	}
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	p.set.drop(p)
}

// received counts bytes, and rejects the entry, or the one that has sent the most, if there are too many.
func (p *pending) received(n int) {
	s := p.set
	s.mu.Lock()
	if p.place == nil {
		s.mu.Unlock()
		return
	}
	p.bytes += n
	s.bytes += n
	var tooLarge *pending
	switch {
	case p.bytes > s.maxBytesEach:
		tooLarge = p
	case s.bytes > s.maxBytes:
		tooLarge = s.largest()
	}
	if tooLarge != nil {
		s.drop(tooLarge)
	}
	s.mu.Unlock()
	if tooLarge != nil {
		tooLarge.reject(rejectf(causeRequestSize, codes.ResourceExhausted, "the client has sent %d bytes before it was identified", tooLarge.bytes))
	}
}
