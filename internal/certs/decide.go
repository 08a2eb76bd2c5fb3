package certs

import (
	"crypto"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"
)

// keyAuthorityPrivate is under which key a Secret of Fairlead's own holds the key of its authority.
const keyAuthorityPrivate = "ca.key"

// Lifetimes of the certificates that Fairlead signs itself.
type Lifetimes struct {
	Authority   time.Duration
	Certificate time.Duration
}

func (l Lifetimes) withDefaults() Lifetimes {
	if l.Authority == 0 {
		l.Authority = 5 * 365 * 24 * time.Hour
	}
	if l.Certificate == 0 {
		l.Certificate = 90 * 24 * time.Hour
	}
	return l
}

// renewal is what has to be made anew.
type renewal string

const (
	nothing         renewal = ""
	certificateOnly renewal = "certificate"
	authorityToo    renewal = "authority"
)

// holding is what a Secret of Fairlead's own holds, as far as it can be read.
type holding struct {
	authority *authority
	pair      *pair
	trouble   error
}

func readHolding(data map[string][]byte) holding {
	var h holding
	signer, err := tls.X509KeyPair(data[keyAuthority], data[keyAuthorityPrivate])
	if err != nil {
		h.trouble = fmt.Errorf("%s and %s do not make an authority with its key: %w", keyAuthority, keyAuthorityPrivate, err)
		return h
	}
	key, signs := signer.PrivateKey.(crypto.Signer)
	if !signs || !signer.Leaf.IsCA {
		h.trouble = fmt.Errorf("%s is not that of an authority", keyAuthority)
		return h
	}
	h.authority = &authority{signer.Leaf, key}
	h.pair, h.trouble = parsePair(data)
	return h
}

// decide says what has to be made anew, and why, given what is held. An authority is replaced while one more
// certificate's lifetime is left of it, so that every certificate gets its full time.
func decide(h holding, names []string, lifetimes Lifetimes, now time.Time) (renewal, string) {
	switch left := h.authorityLeft(now); {
	case h.authority == nil:
		return authorityToo, "there is none that can be used: " + h.trouble.Error()
	case left <= lifetimes.Certificate || left <= lifetimes.Authority/5:
		return authorityToo, fmt.Sprintf("the authority ends at %s", h.authority.certificate.NotAfter.UTC().Format(time.RFC3339))
	case h.pair == nil:
		return certificateOnly, h.trouble.Error()
	}
	leaf := h.pair.leaf()
	if leaf.NotAfter.Sub(now) <= lifetimes.Certificate/3 {
		return certificateOnly, fmt.Sprintf("the certificate ends at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if missing := missingNames(leaf, names); len(missing) > 0 {
		return certificateOnly, "the certificate is not for " + strings.Join(missing, ", ")
	}
	return nothing, ""
}

func (h holding) authorityLeft(now time.Time) time.Duration {
	if h.authority == nil {
		return 0
	}
	return h.authority.certificate.NotAfter.Sub(now)
}

// renewedNames are those of the next certificate. One that is renewed for lack of a name keeps those it had, or two
// operators that are called by different names would take turns.
func renewedNames(h holding, names []string) []string {
	all := slices.Clone(names)
	if h.pair != nil && len(missingNames(h.pair.leaf(), names)) > 0 {
		all = append(all, namesOf(h.pair.leaf())...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// renew makes what was decided on, all of which goes into the Secret in one write.
func renew(what renewal, h holding, names []string, lifetimes Lifetimes, now time.Time) (map[string][]byte, error) {
	signer := h.authority
	if what == authorityToo {
		var err error
		if signer, err = newAuthority(now, lifetimes.Authority); err != nil {
			return nil, err
		}
	}
	p, err := signer.issue(now, lifetimes.Certificate, renewedNames(h, names))
	if err != nil {
		return nil, err
	}
	key, err := encodeKey(p.certificate.PrivateKey)
	if err != nil {
		return nil, err
	}
	signerKey, err := encodeKey(signer.key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		keyCertificate:      encodeCertificate(p.leaf().Raw),
		keyPrivate:          key,
		keyAuthority:        encodeBundle(p.authorities),
		keyAuthorityPrivate: signerKey,
	}, nil
}
