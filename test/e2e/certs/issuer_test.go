package certs_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// issuer plays cert-manager with an issuer that signs nothing: each certificate vouches for itself, with a key of its
// own. It also plays the kubelet that mounts the Secret.
type issuer struct {
	dir    string
	issued int
}

// issue puts the next certificate in the place of the last, all files at once.
func (i *issuer) issue() error {
	i.issued++
	version := fmt.Sprintf("..%d", i.issued)
	files, err := selfIssued(int64(i.issued))
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(i.dir, version), 0o700); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(i.dir, version, name), text, 0o600); err != nil {
			return err
		}
		if i.issued == 1 {
			if err := os.Symlink(filepath.Join("..data", name), filepath.Join(i.dir, name)); err != nil {
				return err
			}
		}
	}
	next := filepath.Join(i.dir, "..data_tmp")
	return errors.Join(os.Symlink(version, next), os.Rename(next, filepath.Join(i.dir, "..data")))
}

func selfIssued(serial int64) (map[string][]byte, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: fmt.Sprintf("fairlead-webhook-%d", serial)},
		NotBefore: time.Now().Add(-time.Hour).Add(time.Duration(serial) * time.Second), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return map[string][]byte{
		"tls.crt": certificate, "ca.crt": certificate,
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}, nil
}
