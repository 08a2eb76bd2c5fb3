package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
)

const pemCertificate = "CERTIFICATE"

// parseBundle reads certificates in PEM.
func parseBundle(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != pemCertificate {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse a certificate: %w", err)
		}
		all = appendNew(all, certificate)
	}
	if len(all) == 0 {
		return nil, errNoCertificate
	}
	return all, nil
}

// encodeBundle writes certificates in PEM, in an order of their own: the same ones are always the same text.
func encodeBundle(certificates []*x509.Certificate) []byte {
	sorted := slices.SortedFunc(slices.Values(certificates), func(a, b *x509.Certificate) int {
		if byAge := a.NotBefore.Compare(b.NotBefore); byAge != 0 {
			return byAge
		}
		return bytes.Compare(a.Raw, b.Raw)
	})
	var text bytes.Buffer
	for _, certificate := range sorted {
		text.Write(encodeCertificate(certificate.Raw))
	}
	return text.Bytes()
}

func encodeCertificate(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: raw})
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
