package charts

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v4/pkg/provenance"
	"oras.land/oras-go/v2"
	orasremote "oras.land/oras-go/v2/registry/remote"
)

// newSigner makes an OpenPGP key, and a keyring file with its public part.
func newSigner(t testing.TB, who string) (*provenance.Signatory, string) {
	t.Helper()
	entity, err := openpgp.NewEntity(who, "", who+"@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var public bytes.Buffer
	if err := entity.Serialize(&public); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), who+".gpg")
	put(t, file, public.String())
	return &provenance.Signatory{Entity: entity}, file
}

func sign(t testing.TB, by *provenance.Signatory, archive []byte, file string) []byte {
	t.Helper()
	signed, err := by.ClearSign(archive, file, []byte("name: istiod"))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(signed)
}

// Charts that are not signed by a key of the keyring are refused, and nothing of them is kept.
func TestProvenance(t *testing.T) {
	ours, keyring := newSigner(t, "ours")
	theirs, _ := newSigner(t, "theirs")
	archive := small(t, "istiod", "v1.24.0", "as published")
	other := small(t, "istiod", "v1.24.0", "another")
	older := small(t, "istiod", "v1.23.0", "with a known hole")
	const file = "istiod-1.24.0.tgz"
	cases := map[string]struct {
		archive, prov []byte
		want          []string
	}{
		"signed":                      {archive, sign(t, ours, archive, file), nil},
		"not signed":                  {archive, nil, []string{"the chart has no provenance file"}},
		"signed by an unknown key":    {archive, sign(t, theirs, archive, file), []string{"the provenance file is not valid", "unknown entity"}},
		"the signature of another":    {archive, sign(t, ours, other, file), []string{"the provenance file is not valid", "sha256 sum does not match"}},
		"the signature of a file":     {archive, sign(t, ours, archive, "base-1.24.0.tgz"), []string{"the provenance file is not valid", "istiod-1.24.0.tgz"}},
		"an older chart in its place": {older, sign(t, ours, older, file), []string{"what is signed is chart istiod 1.23.0"}},
		"no signature":                {archive, []byte("name: istiod\n"), []string{"the provenance file is not valid", "signature block not found"}},
		"a signature that was changed": {
			archive, bytes.Replace(sign(t, ours, archive, file), []byte("name: istiod"), []byte("name: other!"), 1),
			[]string{"the provenance file is not valid", "invalid signature"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, s *served) {
				s.publishSigned("istiod", "v1.24.0", c.archive, c.prov)
				s.options.Keyring = keyring
				loaded, err := s.open(t).Load(t.Context(), "istiod", "v1.24.0")
				if c.want == nil {
					if err != nil || loaded.Metadata.Description != "as published" {
						t.Errorf("got %v, %v", loaded, err)
					}
					return
				}
				wantError(t, err, append(c.want, "load chart istiod v1.24.0 from ", s.options.Repository, "the chart is not used")...)
				if !errors.As(err, new(*UnverifiedError)) {
					t.Errorf("not an UnverifiedError: %v", err)
				}
				if err != nil && !strings.Contains(err.Error(), "what is signed is chart") {
					wantError(t, err, "--chart-keyring "+keyring+" (keys ", "or leave out --chart-keyring")
				}
				if left := s.cached(t); len(left) > 0 {
					t.Errorf("left in the cache: %v", left)
				}
			})
		})
	}
}

// What was downloaded before a keyring was given is verified all the same; what was verified is not downloaded again.
func TestProvenanceOfCachedCharts(t *testing.T) {
	ours, keyring := newSigner(t, "ours")
	_, another := newSigner(t, "another")
	archive := small(t, "istiod", "v1.24.0", "")
	eachKind(t, func(t *testing.T, s *served) {
		s.publish("istiod", "v1.24.0", archive)
		load(t, s.open(t), "istiod", "v1.24.0")
		s.options.Keyring = keyring
		_, err := s.open(t).Load(t.Context(), "istiod", "v1.24.0")
		wantError(t, err, "the chart has no provenance file")

		s.publishSigned("istiod", "v1.24.0", archive, sign(t, ours, archive, "istiod-1.24.0.tgz"))
		load(t, s.open(t), "istiod", "v1.24.0")
		if asked := s.count(func() { load(t, s.open(t), "istiod", "v1.24.0") }); asked != 0 {
			t.Errorf("what was verified made %d requests", asked)
		}
		s.options.Keyring = another
		_, err = s.open(t).Load(t.Context(), "istiod", "v1.24.0")
		wantError(t, err, "unknown entity")
	})
}

func newCosignKey(t testing.TB) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key, putPublicKey(t, key.Public())
}

func putPublicKey(t testing.TB, key crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cosign.pub")
	put(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	return file
}

// payload is what cosign signs.
func payload(manifest string) string {
	return fmt.Sprintf(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, manifest)
}

// cosign stores signatures as cosign does: a manifest beside the chart, with a layer for each.
func (s *served) cosign(t testing.TB, manifest string, signatures ...cosignSignature) {
	t.Helper()
	istiod, err := orasremote.NewRepository(strings.TrimPrefix(s.options.Repository, "oci://") + "/istiod")
	if err != nil {
		t.Fatal(err)
	}
	istiod.PlainHTTP, istiod.Client = s.options.CAFile == "", s.Client()
	var layers []ocispec.Descriptor
	for _, one := range signatures {
		layer, err := oras.PushBytes(t.Context(), istiod, cosignMediaType, one.payload)
		if err != nil {
			t.Fatal(err)
		}
		layer.Annotations = map[string]string{cosignAnnotation: one.encoded}
		layers = append(layers, layer)
	}
	stored, err := oras.PackManifest(t.Context(), istiod, oras.PackManifestVersion1_1, "application/vnd.dev.cosign.artifact",
		oras.PackManifestOptions{Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	if err := istiod.Tag(t.Context(), stored, strings.Replace(manifest, ":", "-", 1)+".sig"); err != nil {
		t.Fatal(err)
	}
}

func cosigned(t testing.TB, by *ecdsa.PrivateKey, payload string) cosignSignature {
	t.Helper()
	sum := sha256.Sum256([]byte(payload))
	signature, err := ecdsa.SignASN1(rand.Reader, by, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return cosignSignature{[]byte(payload), base64.StdEncoding.EncodeToString(signature)}
}

// Charts of a registry that are not signed with the key are refused, and nothing of them is kept.
func TestCosign(t *testing.T) {
	ours, file := newCosignKey(t)
	theirs, _ := newCosignKey(t)
	another := "sha256:" + strings.Repeat("0", 64)
	cases := map[string]struct {
		version string
		sign    func(manifest string) []cosignSignature
		want    string
	}{
		"signed": {"v1.24.0", func(m string) []cosignSignature { return []cosignSignature{cosigned(t, ours, payload(m))} }, ""},
		"signed by others, and with our key": {"v1.24.0", func(m string) []cosignSignature {
			return []cosignSignature{{[]byte(payload(m)), "%"}, cosigned(t, theirs, payload(m)), cosigned(t, ours, payload(m))}
		}, ""},
		"not signed":               {"v1.24.0", nil, "the chart has no signature of cosign"},
		"signed by an unknown key": {"v1.24.0", func(m string) []cosignSignature { return []cosignSignature{cosigned(t, theirs, payload(m))} }, "none of the 1 signatures of cosign is valid (the signature is not of this key)"},
		"a signature of another": {"v1.24.0", func(string) []cosignSignature {
			return []cosignSignature{cosigned(t, ours, payload(another))}
		}, "(what is signed is " + another + ", and the chart is sha256:"},
		"another text that was signed": {"v1.24.0", func(m string) []cosignSignature {
			return []cosignSignature{cosigned(t, ours, `{"image":"`+m+`"}`)}
		}, "(what is signed is not a payload of cosign)"},
		"a payload that was changed": {"v1.24.0", func(m string) []cosignSignature {
			return []cosignSignature{{[]byte(payload(m)), cosigned(t, ours, payload(another)).encoded}}
		}, "(the signature is not of this key)"},
		"not a signature":             {"v1.24.0", func(m string) []cosignSignature { return []cosignSignature{{[]byte(payload(m)), "%"}} }, "(the signature is not in base64)"},
		"an older chart in its place": {"v1.23.0", func(m string) []cosignSignature { return []cosignSignature{cosigned(t, ours, payload(m))} }, "what is signed is chart istiod 1.23.0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, overTLS := range []bool{false, true} {
				s := serveRegistry(t, overTLS)
				manifest := s.publishSigned("istiod", "v1.24.0", small(t, "istiod", c.version, ""), nil)
				if c.sign != nil {
					s.cosign(t, manifest, c.sign(manifest)...)
				}
				s.options.CosignKey = file
				_, err := s.open(t).Load(t.Context(), "istiod", "v1.24.0")
				if c.want == "" {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				wantError(t, err, c.want, "load chart istiod v1.24.0 from ", s.options.Repository, "the chart is not used")
				if !errors.As(err, new(*UnverifiedError)) {
					t.Errorf("not an UnverifiedError: %v", err)
				}
				if c.version == "v1.24.0" {
					wantError(t, err, "--chart-cosign-key "+file+" (key sha256:", "or leave out --chart-cosign-key")
				}
				if left := s.cached(t); len(left) > 0 {
					t.Errorf("left in the cache: %v", left)
				}
			}
		})
	}
}

// With both kinds of keys, both signatures are needed.
func TestBothSignatures(t *testing.T) {
	key, file := newCosignKey(t)
	ours, keyring := newSigner(t, "ours")
	s := serveRegistry(t, false)
	archive := small(t, "istiod", "v1.24.0", "")
	manifest := s.publishSigned("istiod", "v1.24.0", archive, sign(t, ours, archive, "istiod-1.24.0.tgz"))
	s.options.Keyring, s.options.CosignKey = keyring, file
	_, err := s.open(t).Load(t.Context(), "istiod", "v1.24.0")
	wantError(t, err, "the chart has no signature of cosign")
	s.cosign(t, manifest, cosigned(t, key, payload(manifest)))
	load(t, s.open(t), "istiod", "v1.24.0")
}

func TestKeysThatAreNone(t *testing.T) {
	_, keyring := newSigner(t, "ours")
	_, cosign := newCosignKey(t)
	larger, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text, nothing, missing := filepath.Join(dir, "text"), filepath.Join(dir, "nothing"), filepath.Join(dir, "missing")
	put(t, text, "not a key")
	put(t, nothing, "")
	cases := map[string]struct {
		options Options
		want    string
	}{
		"a keyring":                   {Options{Keyring: keyring}, ""},
		"a key of cosign":             {Options{CosignKey: cosign}, ""},
		"no keyring":                  {Options{Keyring: missing}, "--chart-keyring: open " + missing + ": no such file"},
		"a text for a keyring":        {Options{Keyring: text}, "--chart-keyring: " + text},
		"a keyring without keys":      {Options{Keyring: nothing}, "--chart-keyring: " + nothing},
		"no key of cosign":            {Options{CosignKey: missing}, "--chart-cosign-key: open " + missing + ": no such file"},
		"a text for a key":            {Options{CosignKey: text}, "--chart-cosign-key: " + text + " is not a public key of ECDSA P-256"},
		"a key of another kind":       {Options{CosignKey: putPublicKey(t, larger.Public())}, "is not a public key of ECDSA P-256"},
		"cosign and a repository":     {Options{CosignKey: cosign, Repository: "https://charts.example"}, "--chart-cosign-key is for an OCI registry, and https://charts.example is a Helm repository: use --chart-keyring"},
		"a directory and a keyring":   {Options{Dir: dir, Keyring: keyring}, "are for downloads: leave them out with --chart-dir " + dir},
		"a directory and a key":       {Options{Dir: dir, CosignKey: cosign}, "are for downloads: leave them out with --chart-dir " + dir},
		"a repository and a keyring":  {Options{Keyring: keyring, Repository: "https://charts.example"}, ""},
		"a registry and both of them": {Options{Keyring: keyring, CosignKey: cosign, Repository: "oci://charts.example/istio"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.options.Validate()
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, c.want)
		})
	}
}
