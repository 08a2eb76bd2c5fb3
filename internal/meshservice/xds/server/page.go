package server

import "slices"

// maxFlights bounds how many answers are remembered for a proxy that asks on and on without acknowledging any.
const maxFlights = 8

// flight is an answer that is on its way to the proxy, or waits for its word.
type flight struct {
	// nonce is empty until it is sent.
	nonce string
	// before is what the proxy knew without it, after what it knows with it, and sent what is in it.
	before, after, sent list
	// version of the configuration's resources of that type.
	version string
	// first says that nothing was sent before it.
	first bool
}

// refusal is what a proxy would not take.
type refusal struct {
	message string
	version string
	of      list
}

// page is what one stream was sent of one type.
type page struct {
	subscribed bool
	wildcard   bool
	// names are those asked for by name. They may be read only while the watch is open: after that go-control-plane
	// changes them.
	names map[string]struct{}
	// selected are those asked for of all, as long as neither changes.
	all, selected list
	// known is what the proxy has if it takes all that was sent, acked what it said that it has taken.
	known, acked list
	// version is that of what was last acknowledged.
	version string
	// greeted says that something was sent, answered that something was acknowledged.
	greeted, answered bool
	flights           []flight
	refusal           *refusal
	// settled is the version of the configuration that it was seen to have in full.
	settled string
}

func (p *page) asks(name string) bool {
	if p.wildcard {
		return true
	}
	_, asked := p.names[name]
	return asked
}

// selects are those of a configuration that the proxy asks for.
func (p *page) selects(all list) list {
	switch {
	case p.wildcard:
		return all
	case p.all.shared(all):
		return p.selected
	case len(p.names) < len(all)/8:
		p.selected = nil
		for name := range p.names {
			if r := all.find(name); r != nil {
				p.selected = append(p.selected, r)
			}
		}
		slices.SortFunc(p.selected, byName)
	default:
		p.selected = all.keep(p.asks)
	}
	p.all = all
	return p.selected
}

// subscribe notes what the proxy asks for from now on, and forgets what it no longer asks for: it drops that too.
func (p *page) subscribe(wildcard bool, names map[string]struct{}) {
	p.subscribed, p.wildcard, p.names = true, wildcard, names
	p.all, p.selected = nil, nil
	p.known, p.acked = p.known.keep(p.asks), p.acked.keep(p.asks)
}

// forget has the resources of these names sent again.
func (p *page) forget(names list) {
	if len(names) > 0 {
		p.known = p.known.strangers(names)
	}
}

// push notes an answer that is about to be sent.
func (p *page) push(after, sent list, version string) {
	if len(p.flights) == maxFlights {
		p.flights = slices.Delete(p.flights, 0, 1)
	}
	p.flights = append(p.flights, flight{before: p.known, after: after, sent: sent, version: version, first: !p.greeted})
	p.known, p.greeted, p.settled = after, true, ""
}

// departed gives the oldest answer that waits the nonce under which it goes out.
func (p *page) departed(nonce string) {
	for i := range p.flights {
		if p.flights[i].nonce == "" {
			p.flights[i].nonce = nonce
			return
		}
	}
}

// recall takes back what was not sent yet.
func (p *page) recall() {
	i := slices.IndexFunc(p.flights, func(f flight) bool { return f.nonce == "" })
	if i < 0 {
		return
	}
	p.known, p.greeted = p.flights[i].before, !p.flights[i].first
	p.flights = p.flights[:i]
}

// landed takes the proxy's word on an answer: none against it is an acknowledgement, also of all that came before. Version
// is that of the present configuration. It says whether there was such an answer.
func (p *page) landed(nonce, against, version string) bool {
	i := slices.IndexFunc(p.flights, func(f flight) bool { return f.nonce == nonce && nonce != "" })
	if i < 0 {
		return false
	}
	f := p.flights[i]
	p.flights = slices.Delete(p.flights, 0, i+1)
	if against != "" {
		p.refusal = &refusal{message: against, version: f.version, of: f.sent.without(p.acked)}
		p.retarget(version)
		return true
	}
	p.acked, p.answered, p.version = f.after, true, f.version
	if p.refusal != nil {
		p.acked = p.acked.without(p.refusal.of)
	}
	return true
}

// retarget has what was refused of an older version sent again: what was wrong with it may have been something else.
func (p *page) retarget(version string) {
	if p.refusal != nil && p.refusal.version != version {
		p.known = p.known.without(p.refusal.of)
		p.refusal = nil
	}
}
