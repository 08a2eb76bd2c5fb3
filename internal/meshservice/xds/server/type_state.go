package server

import "slices"

// maxInflight bounds how many answers are remembered for a proxy that asks on and on without acknowledging any.
const maxInflight = 8

// inflight is an answer that is on its way to the proxy, or waits for its word.
type inflight struct {
	// nonce is empty until it is sent.
	nonce string
	// before is what the proxy knew without it, after what it knows with it, and sent what is in it.
	before, after, sent list
	// version of the configuration's resources of that type.
	version string
	// first says that nothing was sent before it.
	first bool
}

// nack is what a proxy would not take.
type nack struct {
	message   string
	version   string
	resources list
}

// typeState is what one stream was sent of one type.
type typeState struct {
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
	// responded says that something was sent, answered that something was acknowledged.
	responded, acknowledged bool
	responses               []inflight
	nack                    *nack
	// currentVersion is the version of the configuration that it was seen to have in full.
	currentVersion string
}

func (p *typeState) isSubscribed(name string) bool {
	if p.wildcard {
		return true
	}
	_, asked := p.names[name]
	return asked
}

// subscribedOf are those of a configuration that the proxy asks for.
func (p *typeState) subscribedOf(all list) list {
	switch {
	case p.wildcard:
		return all
	case p.all.sharesMemory(all):
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
		p.selected = all.filter(p.isSubscribed)
	}
	p.all = all
	return p.selected
}

// subscribe notes what the proxy asks for from now on, and forgets what it no longer asks for: it drops that too.
func (p *typeState) subscribe(wildcard bool, names map[string]struct{}) {
	p.subscribed, p.wildcard, p.names = true, wildcard, names
	p.all, p.selected = nil, nil
	p.known, p.acked = p.known.filter(p.isSubscribed), p.acked.filter(p.isSubscribed)
}

// resend has the resources of these names sent again.
func (p *typeState) resend(names list) {
	if len(names) > 0 {
		p.known = p.known.missingIn(names)
	}
}

// recordResponse notes an answer that is about to be sent.
func (p *typeState) recordResponse(after, sent list, version string) {
	if len(p.responses) == maxInflight {
		p.responses = slices.Delete(p.responses, 0, 1)
	}
	p.responses = append(p.responses, inflight{before: p.known, after: after, sent: sent, version: version, first: !p.responded})
	p.known, p.responded, p.currentVersion = after, true, ""
}

// setNonce gives the oldest answer that waits the nonce under which it goes out.
func (p *typeState) setNonce(nonce string) {
	for i := range p.responses {
		if p.responses[i].nonce == "" {
			p.responses[i].nonce = nonce
			return
		}
	}
}

// dropUnsent takes back what was not sent yet.
func (p *typeState) dropUnsent() {
	i := slices.IndexFunc(p.responses, func(f inflight) bool { return f.nonce == "" })
	if i < 0 {
		return
	}
	p.known, p.responded = p.responses[i].before, !p.responses[i].first
	p.responses = p.responses[:i]
}

// acknowledge takes the proxy's word on an answer: none against it is an acknowledgement, also of all that came before. Version
// is that of the present configuration. It says whether there was such an answer.
func (p *typeState) acknowledge(nonce, against, version string) bool {
	i := slices.IndexFunc(p.responses, func(f inflight) bool { return f.nonce == nonce && nonce != "" })
	if i < 0 {
		return false
	}
	f := p.responses[i]
	p.responses = slices.Delete(p.responses, 0, i+1)
	if against != "" {
		p.nack = &nack{message: against, version: f.version, resources: f.sent.changedFrom(p.acked)}
		p.retryRejected(version)
		return true
	}
	p.acked, p.acknowledged, p.version = f.after, true, f.version
	if p.nack != nil {
		p.acked = p.acked.changedFrom(p.nack.resources)
	}
	return true
}

// retryRejected has what was refused of an older version sent again: what was wrong with it may have been something else.
func (p *typeState) retryRejected(version string) {
	if p.nack != nil && p.nack.version != version {
		p.known = p.known.changedFrom(p.nack.resources)
		p.nack = nil
	}
}
