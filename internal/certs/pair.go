package certs

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
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
	// Checked for the end of the certificate's lifetime: whether the certificate is valid now is another question, and an
	// authority that was renewed with the same key may be younger than the certificate.
	if err := p.trustedBy(authorities, p.leaf().NotAfter); err != nil {
		return nil, fmt.Errorf("%s is not signed by any certificate of %s: %w", keyCertificate, keyAuthority, err)
	}
	return p, nil
}

func (p *pair) leaf() *x509.Certificate { return p.certificate.Leaf }

// validAt tells whether a caller that trusts the authorities accepts the certificate at that time.
func (p *pair) validAt(now time.Time) bool { return p.trustedBy(p.authorities, now) == nil }

// trustedBy is the error with which a caller that trusts these authorities refuses the certificate.
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
	return p != nil && other != nil && p.leaf().Equal(other.leaf()) &&
		bytes.Equal(encodeBundle(p.authorities...), encodeBundle(other.authorities...))
}

// missingNames are the wanted names that a certificate is not valid for.
func missingNames(leaf *x509.Certificate, wanted []string) []string {
	var missing []string
	for _, name := range wanted {
		if leaf.VerifyHostname(name) != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// parseBundle reads certificates in PEM.
func parseBundle(text []byte) ([]*x509.Certificate, error) {
	all, err := certutil.ParseCertsPEM(text)
	if err != nil {
		return nil, err
	}
	return appendNew(nil, all...), nil
}

// encodeBundle writes certificates in PEM and sorted, so that the same certificates are always the same text.
func encodeBundle(certificates ...*x509.Certificate) []byte {
	sorted := slices.SortedFunc(slices.Values(certificates), func(a, b *x509.Certificate) int {
		return cmp.Or(a.NotBefore.Compare(b.NotBefore), bytes.Compare(a.Raw, b.Raw))
	})
	text, _ := certutil.EncodeCertificates(sorted...) // writing to memory does not fail
	return text
}

func contains(all []*x509.Certificate, one *x509.Certificate) bool {
	return slices.ContainsFunc(all, one.Equal)
}

func appendNew(all []*x509.Certificate, more ...*x509.Certificate) []*x509.Certificate {
	for _, one := range more {
		if !contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
