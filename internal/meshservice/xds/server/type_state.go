package server

import "slices"

// maxInflight bounds the responses remembered for a proxy that never acknowledges.
const maxInflight = 8

// inflight is a response that has not been acknowledged.
type inflight struct {
	// nonce is empty until the response is sent.
	nonce string
	// before is what the proxy has without the response, after what it has with it, and sent the resources in it.
	before, after, sent list
	// version of the configuration's resources of that type, and wire that of what the proxy has with the response: what a
	// proxy says when it reconnects.
	version, wire string
	// first says that it is the first response of the type.
	first bool
}

// nack is a rejected response.
type nack struct {
	message   string
	version   string
	resources list
}

// typeState tracks the resources of one type on one stream.
type typeState struct {
	subscribed bool
	wildcard   bool
	// names are the subscribed resource names. They may be read only while the watch is open: go-control-plane changes them
	// afterwards.
	names map[string]struct{}
	// selected caches the subscribed resources of all.
	all, selected list
	// known is what the proxy has if it accepts all responses, and acked what it has acknowledged.
	known, acked list
	// wire is the last acknowledged version of what the proxy has, and resumes the one that it reconnected with, if any.
	wire, resumes string
	// responded says that a response was sent, and acknowledged that one was acknowledged.
	responded, acknowledged bool
	responses               []inflight
	nack                    *nack
	// currentVersion is the version of the configuration that the proxy has acknowledged in full.
	currentVersion string
}

func (p *typeState) isSubscribed(name string) bool {
	if p.wildcard {
		return true
	}
	_, asked := p.names[name]
	return asked
}

// subscribedOf returns the subscribed resources of a configuration.
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

// subscribe sets the subscription, and forgets resources that are no longer subscribed: the proxy drops them too.
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

// recordResponse records a response that is about to be sent.
func (p *typeState) recordResponse(after, sent list, version, wire string) {
	if len(p.responses) == maxInflight {
		p.responses = slices.Delete(p.responses, 0, 1)
	}
	p.responses = append(p.responses, inflight{before: p.known, after: after, sent: sent, version: version, wire: wire, first: !p.responded})
	p.known, p.responded, p.currentVersion = after, true, ""
}

// setNonce sets the nonce of the oldest unsent response, and returns its resources.
func (p *typeState) setNonce(nonce string) list {
	for i := range p.responses {
		if p.responses[i].nonce == "" {
			p.responses[i].nonce = nonce
			return p.responses[i].sent
		}
	}
	return nil
}

// dropUnsent drops the responses that were not sent.
func (p *typeState) dropUnsent() {
	i := slices.IndexFunc(p.responses, func(f inflight) bool { return f.nonce == "" })
	if i < 0 {
		return
	}
	p.known, p.responded = p.responses[i].before, !p.responses[i].first
	p.responses = p.responses[:i]
}

// acknowledge records an ACK, which covers all earlier responses, or a NACK with its message. Version is that of the
// current configuration. It says whether the nonce is known.
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
	p.acked, p.acknowledged, p.wire = f.after, true, f.wire
	if p.nack != nil {
		p.acked = p.acked.changedFrom(p.nack.resources)
	}
	return true
}

// retryRejected has resources that were rejected in an older version sent again: the cause may have been another resource.
func (p *typeState) retryRejected(version string) {
	if p.nack != nil && p.nack.version != version {
		p.known = p.known.changedFrom(p.nack.resources)
		p.nack = nil
	}
}
