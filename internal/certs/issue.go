package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"time"
)

// skew is how far behind the clock of a caller may be.
const skew = time.Hour

// authority signs Fairlead's own certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(now time.Time, lifetime time.Duration) (*authority, error) {
	template := newTemplate("fairlead webhook authority", now, now.Add(lifetime))
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	certificate, key, err := sign(template, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	return &authority{certificate, key}, nil
}

// issue signs a certificate for these names, which ends before its authority does.
func (a *authority) issue(now time.Time, lifetime time.Duration, names []string) (*pair, error) {
	end := now.Add(lifetime)
	if end.After(a.certificate.NotAfter) {
		end = a.certificate.NotAfter
	}
	template := newTemplate("fairlead webhook", now, end)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	leaf, key, err := sign(template, a)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %v: %w", names, err)
	}
	return &pair{
		certificate: tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf},
		authorities: []*x509.Certificate{a.certificate},
	}, nil
}

// newTemplate leaves the serial number to the signature.
func newTemplate(name string, now, end time.Time) *x509.Certificate {
	return &x509.Certificate{
		// Callers find the signer of a certificate by its name, and would try every authority of the same name.
		Subject:   pkix.Name{CommonName: name, SerialNumber: rand.Text()},
		NotBefore: now.Add(-skew),
		NotAfter:  end,
	}
}

// sign makes a certificate and its key. Without an authority, the certificate is signed by its own key.
func sign(template *x509.Certificate, by *authority) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if by == nil {
		by = &authority{template, key}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return certificate, key, err
}

// namesOf are the names that a certificate is for.
func namesOf(leaf *x509.Certificate) []string {
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}
