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
		"nothing yet":                      {nil, nil, authorityToo, "ca.crt and ca.key do not make an authority"},
		"all is well":                      {filesOf(t, young, young.pair(t, noon)), nil, nothing, ""},
		"the certificate is used up":       {filesOf(t, young, young.pair(t, noon.Add(-6*time.Hour))), nil, certificateOnly, "the certificate ends at 2027-03-14T15:00:00Z"},
		"the certificate has a third left": {filesOf(t, young, young.pair(t, noon.Add(-6*time.Hour+time.Minute))), nil, nothing, ""},
		"the certificate has ended":        {filesOf(t, young, young.pair(t, noon.Add(-10*time.Hour))), nil, certificateOnly, "ends at"},
		"the authority has a fifth left":   {filesOf(t, old, old.pair(t, noon)), nil, authorityToo, "the authority ends at 2027-03-15T08:00:00Z"},
		"the authority has ended": {
			filesOf(t, makeAuthority(t, noon.Add(-101*time.Hour)), young.pair(t, noon)), nil, authorityToo, "ca.crt and ca.key",
		},
		"another name is wanted":         {filesOf(t, young, young.pair(t, noon)), []string{host, "127.0.0.1"}, certificateOnly, "not for 127.0.0.1"},
		"fewer names are wanted":         {filesOf(t, young, young.pair(t, noon, host, "127.0.0.1")), nil, nothing, ""},
		"the certificate is lost":        {without(keyCertificate), nil, certificateOnly, "no tls.crt"},
		"its key is lost":                {without(keyPrivate), nil, certificateOnly, "no tls.key"},
		"the authority is lost":          {without(keyAuthority), nil, authorityToo, "ca.crt"},
		"the authority's key is lost":    {without(keyAuthorityPrivate), nil, authorityToo, "ca.key"},
		"another authority's key":        {filesOf(t, other, young.pair(t, noon)), nil, authorityToo, "do not make an authority"},
		"signed by another authority":    {mixed(t, young, other), nil, certificateOnly, "is not signed by any certificate of ca.crt"},
		"the authority is not one":       {leafAsAuthority(t, young), nil, authorityToo, "not that of an authority"},
		"what is there cannot be parsed": {map[string][]byte{keyAuthority: []byte("x"), keyAuthorityPrivate: []byte("y")}, nil, authorityToo, "ca.crt"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			names := c.names
			if names == nil {
				names = []string{host}
			}
			held := readHolding(c.files)
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
			next := readHolding(files)
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
			held := holding{authority: a, pair: a.pair(t, noon, c.had...)}
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
