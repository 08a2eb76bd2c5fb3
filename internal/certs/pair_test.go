package certs

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/keyutil"
)

func TestParsePair(t *testing.T) {
	a, b := makeAuthority(t, noon), makeAuthority(t, noon)
	good := a.pair(t, noon)
	with := func(key, value string) map[string][]byte {
		files := maps.Clone(good.files(t))
		files[key] = []byte(value)
		return files
	}
	cases := map[string]struct {
		files map[string][]byte
		want  string
	}{
		"a good one":                    {good.files(t), ""},
		"one that is its own authority": {ownAuthority(t), ""},
		"nothing":                       {nil, "tls.crt is missing: tls.crt, tls.key and ca.crt are required, in PEM"},
		"no authority":                  {with(keyAuthority, " \n"), "ca.crt is missing"},
		"not PEM":                       {with(keyCertificate, "certificate"), "tls.crt and tls.key do not make a certificate with its key"},
		"another key":                   {with(keyPrivate, string(a.pair(t, noon).files(t)[keyPrivate])), "do not make a certificate with its key"},
		"an authority that is no PEM":   {with(keyAuthority, "authority"), "ca.crt: data does not contain any valid RSA or ECDSA certificates"},
		"another authority":             {with(keyAuthority, string(encodeBundle(authorities(b)...))), "tls.crt is not signed by any certificate of ca.crt"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parsePair(c.files)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// ownAuthority is what an issuer of cert-manager that signs nothing makes: a certificate that vouches for itself.
func ownAuthority(t testing.TB) map[string][]byte {
	t.Helper()
	template := newTemplate(host, noon, noon.Add(usual.Certificate))
	template.DNSNames = []string{host}
	leaf, key, err := sign(template, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := encodeBundle(leaf)
	return map[string][]byte{keyCertificate: certificate, keyPrivate: text, keyAuthority: certificate}
}

func TestDirectory(t *testing.T) {
	d := directory{t.TempDir()}
	if _, err := d.load(t.Context()); err == nil || !strings.Contains(err.Error(), "read tls.crt") {
		t.Errorf("got %v", err)
	}
	want := makeAuthority(t, noon).pair(t, noon)
	for key, text := range want.files(t) {
		if err := os.WriteFile(filepath.Join(d.path, key), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := d.load(t.Context())
	if err != nil || !got.same(want) {
		t.Errorf("got %v, %v", got, err)
	}
}
