package charts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"helm.sh/helm/v4/pkg/provenance"
)

// UnverifiedError means that a chart is not signed as the options ask.
type UnverifiedError struct {
	Why, Remedy string
}

func (e *UnverifiedError) Error() string { return e.Why + ", so the chart is not used; " + e.Remedy }

// verification is which signatures a download must have; those without a key are not asked for.
type verification struct {
	keyring *keyring
	cosign  *cosignKey
}

// id is a digest of the keys, or "" where there are none. What was verified with other keys is verified again.
func (v verification) id() string {
	var id string
	if v.keyring != nil {
		id += " keyring " + v.keyring.digest
	}
	if v.cosign != nil {
		id += " cosign " + v.cosign.digest
	}
	return id
}

// checkIdentity fails for another signed chart in the place of the one that is asked for.
func (v verification) checkIdentity(c *Chart, name, version string) error {
	if v.id() == "" || c.Name() == name && c.Metadata.Version == strings.TrimPrefix(version, "v") {
		return nil
	}
	return &UnverifiedError{
		fmt.Sprintf("what is signed is chart %s %s", c.Name(), c.Metadata.Version),
		"publish each chart under its own name and version",
	}
}

// keyring has the public keys of --chart-keyring.
type keyring struct {
	*provenance.Signatory
	file, keys, digest string
}

// maxNamedKeys is how many keys of a keyring an error names.
const maxNamedKeys = 3

func readKeyring(file string) (*keyring, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--chart-keyring: %w", err)
	}
	signatory, err := provenance.NewFromKeyring(file, "")
	if err != nil {
		return nil, fmt.Errorf("--chart-keyring: %s is not a keyring: %w; export one with gpg --export", file, err)
	}
	var ids []string
	for _, entity := range signatory.KeyRing {
		ids = append(ids, entity.PrimaryKey.KeyIdString())
	}
	switch more := len(ids) - maxNamedKeys; {
	case len(ids) == 0:
		return nil, fmt.Errorf("--chart-keyring: %s holds no key; export one with gpg --export", file)
	case more > 0:
		ids = append(ids[:maxNamedKeys], fmt.Sprintf("%d more", more))
	}
	return &keyring{signatory, file, strings.Join(ids, ", "), digestOf(data)}, nil
}

// verify checks the provenance file of an archive, which names the archive and its digest.
func (k *keyring) verify(archive, prov []byte, filename string) error {
	if len(prov) == 0 {
		return k.refuse("the chart has no provenance file")
	}
	if _, err := k.Verify(archive, prov, filename); err != nil {
		return k.refuse("the provenance file is not valid: " + stableMessage(err))
	}
	return nil
}

func (k *keyring) refuse(why string) error {
	return &UnverifiedError{
		fmt.Sprintf("%s, and --chart-keyring %s (keys %s) asks for one", why, k.file, k.keys),
		"sign the chart with one of these keys, as helm package --sign does, and publish its .prov file; " +
			"add the key that signed it to the keyring; or leave out --chart-keyring",
	}
}

// cosignKey is the public key of --chart-cosign-key.
type cosignKey struct {
	*ecdsa.PublicKey
	file, digest string
}

func readCosignKey(file string) (*cosignKey, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--chart-cosign-key: %w", err)
	}
	invalid := fmt.Errorf("--chart-cosign-key: %s is not a public key of ECDSA P-256 in PEM, as cosign generate-key-pair writes it", file)
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, invalid
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, invalid
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, invalid
	}
	return &cosignKey{key, file, digestOf(block.Bytes)}, nil
}

// cosignSignature is a payload and its signature, as cosign stores them beside an artifact.
type cosignSignature struct {
	payload []byte
	// encoded is in base64.
	encoded string
}

// cosignType is what cosign writes into every payload.
const cosignType = "cosign container image signature"

// verify finds a signature of the manifest with a digest.
func (k *cosignKey) verify(manifest string, signatures []cosignSignature) error {
	if len(signatures) == 0 {
		return k.refuse("the chart has no signature of cosign")
	}
	var failures []error
	for _, s := range signatures {
		err := k.verifyOne(manifest, s)
		if err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	return k.refuse(fmt.Sprintf("none of the %d signatures of cosign is valid (%s)", len(signatures), stableMessage(failures[0])))
}

func (k *cosignKey) verifyOne(manifest string, s cosignSignature) error {
	signature, err := base64.StdEncoding.DecodeString(s.encoded)
	if err != nil {
		return errors.New("the signature is not in base64")
	}
	sum := sha256.Sum256(s.payload)
	if !ecdsa.VerifyASN1(k.PublicKey, sum[:], signature) {
		return errors.New("the signature is not of this key")
	}
	// Only now, for what is not signed may hold anything.
	var payload struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(s.payload, &payload); err != nil || payload.Critical.Type != cosignType {
		return errors.New("what is signed is not a payload of cosign")
	}
	if payload.Critical.Image.Digest != manifest {
		return fmt.Errorf("what is signed is %s, and the chart is %s", stableMessage(errors.New(payload.Critical.Image.Digest)), manifest)
	}
	return nil
}

func (k *cosignKey) refuse(why string) error {
	return &UnverifiedError{
		fmt.Sprintf("%s, and --chart-cosign-key %s (key %s) asks for one", why, k.file, k.digest),
		"sign the chart in the registry with cosign sign --key and the private key; or leave out --chart-cosign-key",
	}
}

// signatureTag is the tag under which cosign stores the signatures of a manifest.
func signatureTag(manifest string) string { return strings.Replace(manifest, ":", "-", 1) + ".sig" }
