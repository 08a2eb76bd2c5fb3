package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The keys under which a Secret or a directory holds a certificate, as cert-manager names them.
const (
	keyCertificate = corev1.TLSCertKey
	keyPrivate     = corev1.TLSPrivateKeyKey
	keyAuthority   = corev1.ServiceAccountRootCAKey
)

// pair is a certificate with its key, and the authorities that make it trusted.
type pair struct {
	certificate tls.Certificate
	authorities []*x509.Certificate
}

// parsePair reads a certificate, and refuses one that no caller could trust.
func parsePair(data map[string][]byte) (*pair, error) {
	for _, key := range []string{keyCertificate, keyPrivate, keyAuthority} {
		if len(bytes.TrimSpace(data[key])) == 0 {
			return nil, fmt.Errorf("%s is missing: %s, %s and %s are required, in PEM", key, keyCertificate, keyPrivate, keyAuthority)
		}
	}
	certificate, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	if err != nil {
		return nil, fmt.Errorf("%s and %s do not make a certificate with its key: %w", keyCertificate, keyPrivate, err)
	}
	authorities, err := parseBundle(data[keyAuthority])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyAuthority, err)
	}
	p := &pair{certificate: certificate, authorities: authorities}
	// At the end of its time: whether that has come yet has nothing to do with who signed it, and an authority that was
	// renewed with the same key may be younger than what it signed.
	if err := p.trustedBy(authorities, p.leaf().NotAfter); err != nil {
		return nil, fmt.Errorf("%s is not signed by any certificate of %s: %w", keyCertificate, keyAuthority, err)
	}
	return p, nil
}

func (p *pair) leaf() *x509.Certificate { return p.certificate.Leaf }

// validAt tells whether a caller would accept it at that time, if it trusts the authority.
func (p *pair) validAt(now time.Time) bool { return p.trustedBy(p.authorities, now) == nil }

// trustedBy tells why those who trust these authorities would refuse it.
func (p *pair) trustedBy(authorities []*x509.Certificate, now time.Time) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, authority := range authorities {
		roots.AddCert(authority)
	}
	for _, raw := range p.certificate.Certificate[1:] {
		if intermediate, err := x509.ParseCertificate(raw); err == nil {
			between.AddCert(intermediate)
		}
	}
	_, err := p.leaf().Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

func (p *pair) same(other *pair) bool {
	return p != nil && other != nil && p.leaf().Equal(other.leaf()) && sameAuthorities(p.authorities, other.authorities)
}

func sameAuthorities(a, b []*x509.Certificate) bool {
	return bytes.Equal(encodeBundle(a), encodeBundle(b))
}

// missingNames are those of the wanted names that it is not for.
func missingNames(leaf *x509.Certificate, wanted []string) []string {
	var missing []string
	for _, name := range wanted {
		if leaf.VerifyHostname(name) != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

var errNoCertificate = errors.New("no certificate found")
