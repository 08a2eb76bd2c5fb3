package callers

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"time"
)

// Authority signs the certificates of a control plane and of its clients.
type Authority struct {
	// PEM is its own certificate.
	PEM []byte

	certificate *x509.Certificate
	key         crypto.Signer
}

// Pair is a certificate with its key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// NewAuthority makes one that lasts for a day.
func NewAuthority() (*Authority, error) {
	a := &Authority{}
	template := template("authority", time.Now().Add(24*time.Hour))
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	pair, err := a.sign(template)
	if err != nil {
		return nil, err
	}
	a.PEM = pair.Certificate
	return a, nil
}

// Issue signs a certificate for servers and clients of these names, which are hosts, addresses or URIs.
func (a *Authority) Issue(until time.Time, names ...string) (Pair, error) {
	template := template("issued", until)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if uri, err := url.Parse(name); err == nil && strings.Contains(name, "://") {
			template.URIs = append(template.URIs, uri)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return a.sign(template)
}

func template(name string, until time.Time) *x509.Certificate {
	serial := big.NewInt(time.Now().UnixNano())
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, SerialNumber: serial.String()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
	}
}

// sign makes a certificate; the first one that an authority signs is its own.
func (a *Authority) sign(template *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key: %w", err)
	}
	own := a.key == nil
	if own {
		a.certificate, a.key = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign a certificate: %w", err)
	}
	if own {
		if a.certificate, err = x509.ParseCertificate(raw); err != nil {
			return Pair{}, err
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}
