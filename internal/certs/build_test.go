package certs

import (
	"crypto/x509"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// noon is the moment at which these tests play.
var noon = time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)

var usual = Lifetimes{Authority: 100 * time.Hour, Certificate: 9 * time.Hour}

const host = "fairlead-webhook.fairlead.svc"

func makeAuthority(t testing.TB, born time.Time) *authority {
	t.Helper()
	a, err := newAuthority(born, usual.Authority)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) pair(t testing.TB, born time.Time, names ...string) *pair {
	t.Helper()
	if len(names) == 0 {
		names = []string{host}
	}
	p, err := a.issue(born, usual.Certificate, names)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// files are those of a Secret.
func (p *pair) files(t testing.TB) map[string][]byte {
	t.Helper()
	key, err := keyutil.MarshalPrivateKeyToPEM(p.certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		keyCertificate: encodeBundle(p.leaf()),
		keyPrivate:     key,
		keyAuthority:   encodeBundle(p.authorities...),
	}
}

// filesOf are those of a Secret of Fairlead's own.
func filesOf(t testing.TB, a *authority, p *pair) map[string][]byte {
	t.Helper()
	files := p.files(t)
	key, err := keyutil.MarshalPrivateKeyToPEM(a.key)
	if err != nil {
		t.Fatal(err)
	}
	files[keyAuthorityPrivate] = key
	return files
}

func authorities(all ...*authority) []*x509.Certificate {
	var certificates []*x509.Certificate
	for _, a := range all {
		certificates = append(certificates, a.certificate)
	}
	return certificates
}
