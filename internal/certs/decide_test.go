package certs

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecide(t *testing.T) {
	young := makeAuthority(t, noon.Add(-12*time.Hour))
	old := makeAuthority(t, noon.Add(-80*time.Hour))
	other := makeAuthority(t, noon)
	without := func(key string) map[string][]byte {
		files := maps.Clone(filesOf(t, young, young.pair(t, noon)))
		delete(files, key)
		return files
	}
	cases := map[string]struct {
		files map[string][]byte
		names []string
		want  renewal
		why   string
	}{
		"nothing yet":                      {nil, nil, authorityAndCertificate, "ca.crt and ca.key do not make an authority"},
		"all is well":                      {filesOf(t, young, young.pair(t, noon)), nil, nothing, ""},
		"the certificate is used up":       {filesOf(t, young, young.pair(t, noon.Add(-6*time.Hour))), nil, certificateOnly, "the certificate expires at 2027-03-14T15:00:00Z"},
		"the certificate has a third left": {filesOf(t, young, young.pair(t, noon.Add(-6*time.Hour+time.Minute))), nil, nothing, ""},
		"the certificate has ended":        {filesOf(t, young, young.pair(t, noon.Add(-10*time.Hour))), nil, certificateOnly, "expires at"},
		"the authority has a fifth left":   {filesOf(t, old, old.pair(t, noon)), nil, authorityAndCertificate, "the authority expires at 2027-03-15T08:00:00Z"},
		"the authority has ended": {
			filesOf(t, makeAuthority(t, noon.Add(-101*time.Hour)), young.pair(t, noon)), nil, authorityAndCertificate, "ca.crt and ca.key",
		},
		"another name is wanted":         {filesOf(t, young, young.pair(t, noon)), []string{host, "127.0.0.1"}, certificateOnly, "not valid for 127.0.0.1"},
		"fewer names are wanted":         {filesOf(t, young, young.pair(t, noon, host, "127.0.0.1")), nil, nothing, ""},
		"the certificate is lost":        {without(keyCertificate), nil, certificateOnly, "tls.crt is missing"},
		"its key is lost":                {without(keyPrivate), nil, certificateOnly, "tls.key is missing"},
		"the authority is lost":          {without(keyAuthority), nil, authorityAndCertificate, "ca.crt"},
		"the authority's key is lost":    {without(keyAuthorityPrivate), nil, authorityAndCertificate, "ca.key"},
		"another authority's key":        {filesOf(t, other, young.pair(t, noon)), nil, authorityAndCertificate, "do not make an authority"},
		"signed by another authority":    {mixed(t, young, other), nil, certificateOnly, "is not signed by any certificate of ca.crt"},
		"the authority is not one":       {leafAsAuthority(t, young), nil, authorityAndCertificate, "is not a certificate authority"},
		"what is there cannot be parsed": {map[string][]byte{keyAuthority: []byte("x"), keyAuthorityPrivate: []byte("y")}, nil, authorityAndCertificate, "ca.crt"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			names := c.names
			if names == nil {
				names = []string{host}
			}
			held := readSecretContent(c.files)
			what, why := decide(held, names, usual, noon)
			if what != c.want || !strings.Contains(why, c.why) {
				t.Fatalf("to renew: %q, %s; want %q, %s", what, why, c.want, c.why)
			}
			if what == nothing {
				return
			}
			files, err := renew(what, held, names, usual, noon)
			if err != nil {
				t.Fatal(err)
			}
			next := readSecretContent(files)
			if again, why := decide(next, names, usual, noon); again != nothing {
				t.Errorf("renewed, it is to be renewed again: %s", why)
			}
			if what == certificateOnly && !next.authority.certificate.Equal(held.authority.certificate) {
				t.Error("the authority has changed too")
			}
			if err := next.pair.trustedBy(next.pair.authorities, noon); err != nil {
				t.Errorf("nobody would trust it: %v", err)
			}
		})
	}
}

// mixed is the Secret of one authority with the certificate of another.
func mixed(t testing.TB, a, b *authority) map[string][]byte {
	files, theirs := filesOf(t, a, a.pair(t, noon)), b.pair(t, noon).files(t)
	files[keyCertificate], files[keyPrivate] = theirs[keyCertificate], theirs[keyPrivate]
	return files
}

func leafAsAuthority(t testing.TB, a *authority) map[string][]byte {
	files := a.pair(t, noon).files(t)
	return map[string][]byte{keyAuthority: files[keyCertificate], keyAuthorityPrivate: files[keyPrivate]}
}

func TestRenewedNames(t *testing.T) {
	a := makeAuthority(t, noon)
	cases := map[string]struct {
		had, wanted, want []string
	}{
		"the same":                       {[]string{host}, []string{host}, []string{host}},
		"one more, beside those it had":  {[]string{host}, []string{"127.0.0.1"}, []string{"127.0.0.1", host}},
		"those nobody asks for any more": {[]string{host, "127.0.0.1"}, []string{host}, []string{host}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			held := secretContent{authority: a, pair: a.pair(t, noon, c.had...)}
			if diff := cmp.Diff(c.want, renewedNames(held, c.wanted)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCertificateEndsWithItsAuthority(t *testing.T) {
	a := makeAuthority(t, noon)
	p := a.pair(t, noon.Add(usual.Authority-time.Hour))
	if !p.leaf().NotAfter.Equal(a.certificate.NotAfter) {
		t.Errorf("it ends at %s, its authority at %s", p.leaf().NotAfter, a.certificate.NotAfter)
	}
}
