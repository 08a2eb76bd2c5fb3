package certs

import (
	"crypto"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// keyAuthorityPrivate is the key of a managed Secret that holds the private key of its authority.
const keyAuthorityPrivate = "ca.key"

// Lifetimes of the certificates that Fairlead signs itself.
type Lifetimes struct {
	Authority   time.Duration
	Certificate time.Duration
}

// renewal says which certificates have to be issued again.
type renewal string

const (
	nothing                 renewal = ""
	certificateOnly         renewal = "certificate"
	authorityAndCertificate renewal = "authority"
)

// secretContent is the content of a managed Secret, as far as it can be read.
type secretContent struct {
	authority *authority
	pair      *pair
	err       error
}

func readSecretContent(data map[string][]byte) secretContent {
	var h secretContent
	signer, err := tls.X509KeyPair(data[keyAuthority], data[keyAuthorityPrivate])
	if err != nil {
		h.err = fmt.Errorf("%s and %s do not make an authority with its key: %w", keyAuthority, keyAuthorityPrivate, err)
		return h
	}
	key, signs := signer.PrivateKey.(crypto.Signer)
	if !signs || !signer.Leaf.IsCA {
		h.err = fmt.Errorf("%s is not a certificate authority", keyAuthority)
		return h
	}
	h.authority = &authority{signer.Leaf, key}
	h.pair, h.err = parsePair(data)
	return h
}

// decide says which certificates have to be issued again, and why. An authority is replaced one lifetime of a certificate before
// its own end, so that no certificate outlives its authority.
func decide(h secretContent, names []string, lifetimes Lifetimes, now time.Time) (renewal, string) {
	if h.authority == nil {
		return authorityAndCertificate, "no usable authority: " + h.err.Error()
	}
	switch left := h.authority.certificate.NotAfter.Sub(now); {
	case left <= lifetimes.Certificate || left <= lifetimes.Authority/5:
		return authorityAndCertificate, fmt.Sprintf("the authority expires at %s", h.authority.certificate.NotAfter.UTC().Format(time.RFC3339))
	case h.pair == nil:
		return certificateOnly, h.err.Error()
	}
	leaf := h.pair.leaf()
	if leaf.NotAfter.Sub(now) <= lifetimes.Certificate/3 {
		return certificateOnly, fmt.Sprintf("the certificate expires at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if missing := missingNames(leaf, names); len(missing) > 0 {
		return certificateOnly, "the certificate is not valid for " + strings.Join(missing, ", ")
	}
	return nothing, ""
}

// renewedNames are the names of the next certificate. A certificate that is renewed for lack of a name keeps its
// other names, or two operators with different names would renew in turns.
func renewedNames(h secretContent, names []string) []string {
	all := slices.Clone(names)
	if h.pair != nil && len(missingNames(h.pair.leaf(), names)) > 0 {
		all = append(all, namesOf(h.pair.leaf())...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// renew is the new content of the Secret.
func renew(what renewal, h secretContent, names []string, lifetimes Lifetimes, now time.Time) (map[string][]byte, error) {
	signer := h.authority
	if what == authorityAndCertificate {
		var err error
		if signer, err = newAuthority(now, lifetimes.Authority); err != nil {
			return nil, err
		}
	}
	p, err := signer.issue(now, lifetimes.Certificate, renewedNames(h, names))
	if err != nil {
		return nil, err
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(p.certificate.PrivateKey)
	if err != nil {
		return nil, err
	}
	signerKey, err := keyutil.MarshalPrivateKeyToPEM(signer.key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		keyCertificate:      encodeBundle(p.leaf()),
		keyPrivate:          key,
		keyAuthority:        encodeBundle(p.authorities...),
		keyAuthorityPrivate: signerKey,
	}, nil
}
