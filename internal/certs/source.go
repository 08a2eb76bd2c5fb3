// Package certs provides the serving certificate of Fairlead's webhooks, and the CA bundle for their callers.
//
// A Source loads a certificate from a Secret or a directory, again and again. The Secret may be managed by Fairlead, with a
// certificate authority of its own, by cert-manager, or by the user; all three have the keys tls.crt, tls.key and ca.crt.
//
// Callers always trust the served certificate. The authority of a new certificate is published beside the old authority while
// the old certificate is still served; the new certificate is served when its authority has been published for a while. The
// old authority stays published for longer, because another replica may still serve the old certificate. All of that is
// decided from the published bundle, so that no state has to survive a restart.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"
)

// loader is where a certificate comes from.
type loader interface {
	fmt.Stringer
	load(context.Context) (*pair, error)
}

// Source is a serving certificate that is kept up to date.
type Source struct {
	from    loader
	options Options
	changed chan struct{}

	mu      sync.Mutex
	serving *pair
	// waiting is the latest certificate, as long as its authority is not trusted.
	waiting *pair
	trust   trust
}

func newSource(from loader, options Options) *Source {
	return &Source{from: from, options: options, changed: make(chan struct{}, 1)}
}

// Load loads the certificate once.
func (s *Source) Load(ctx context.Context) error {
	p, err := s.from.load(ctx)
	if err != nil {
		return fmt.Errorf("load the webhook certificate from %s: %w", s.from, err)
	}
	if missing := missingNames(p.leaf(), s.options.Names); len(missing) > 0 {
		return fmt.Errorf("load the webhook certificate from %s: the certificate is not valid for %v: issue it for these names, or callers reject it",
			s.from, missing)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	switch {
	case p.same(s.serving):
		s.waiting = nil
	case s.serving != nil && s.serving.validAt(now) && !p.validAt(now):
		return fmt.Errorf("load the webhook certificate from %s: the certificate is valid from %s to %s: renew it, or callers reject it",
			s.from, p.leaf().NotBefore.Format(time.RFC3339), p.leaf().NotAfter.Format(time.RFC3339))
	case !p.same(s.waiting):
		s.waiting = p
		s.notify()
	}
	s.advance(now)
	return nil
}

// Run loads new certificates until the context ends.
func (s *Source) Run(ctx context.Context) error {
	ticker := time.NewTicker(s.options.Poll)
	defer ticker.Stop()
	logged := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := s.Load(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			logged = ""
		case err.Error() != logged:
			logged = err.Error()
			s.options.Log.Error(err, "could not load a new webhook certificate, keeping the current one", "expires", s.expiry())
		}
		s.mu.Lock()
		s.advance(s.options.Now())
		s.mu.Unlock()
	}
}

// advance serves the waiting certificate when its authority is trusted.
func (s *Source) advance(now time.Time) {
	if s.waiting == nil {
		return
	}
	trusted := s.waiting.authorities
	if s.options.AwaitTrust {
		trusted = s.trust.settled(trusted, s.options.Settle, now)
	}
	if !servable(s.serving, s.waiting, trusted, now) {
		return
	}
	if s.serving != nil {
		s.options.Log.Info("serving another webhook certificate", "from", s.from.String(), "until", s.waiting.leaf().NotAfter)
	}
	s.serving, s.waiting = s.waiting, nil
	RecordValidity("webhook", s.serving.leaf())
	s.notify()
}

// servable tells whether the next certificate can be served: its authority is trusted, or the current certificate would not
// be accepted either.
func servable(serving, next *pair, trusted []*x509.Certificate, now time.Time) bool {
	if serving == nil || !serving.validAt(now) {
		return true
	}
	return next.trustedBy(trusted, now) == nil
}

// GetCertificate is for tls.Config.
func (s *Source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil {
		return nil, errors.New("no webhook certificate is loaded yet")
	}
	return &s.serving.certificate, nil
}

// Bundle is the CA bundle for callers, in PEM, given the published one. Only the leader drops authorities that are no longer
// needed.
func (s *Source) Bundle(published []byte, drop bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	already, _ := parseBundle(published) // callers do not trust a bundle that cannot be read
	return encodeBundle(bundle(already, s.own(), s.trust, drop, s.options.Overlap, s.options.Now())...)
}

// own are the authorities of the certificates that this source serves or is going to.
func (s *Source) own() []*x509.Certificate {
	var all []*x509.Certificate
	for _, p := range []*pair{s.serving, s.waiting} {
		if p != nil {
			all = appendNew(all, p.authorities...)
		}
	}
	return all
}

// Published is called with the CA bundle that callers have been seen to use.
func (s *Source) Published(published []byte) {
	authorities, _ := parseBundle(published)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	s.trust.observe(authorities, s.own(), now)
	s.advance(now)
}

// Check fails when no caller would accept the certificate.
func (s *Source) Check(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.serving == nil:
		return errors.New("no webhook certificate is loaded yet")
	case !s.serving.validAt(now):
		return fmt.Errorf("the webhook certificate from %s expired at %s: renew it", s.from, s.serving.leaf().NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// Changed signals that Bundle may have changed.
func (s *Source) Changed() <-chan struct{} { return s.changed }

func (s *Source) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *Source) expiry() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil {
		return "no certificate"
	}
	return s.serving.leaf().NotAfter.UTC().Format(time.RFC3339)
}
