// Package pki makes the certificates, keys and kubeconfigs of one cluster.
// What exists is kept: a cluster that is started again has the same identity.
package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// Years enough that no test cluster outlives its certificates.
const validity = 10 * 365 * 24 * time.Hour

// Names of the pairs under the directory's pki: NAME.crt and NAME.key.
const (
	CA            = "ca"
	FrontProxyCA  = "front-proxy-ca"
	EtcdCA        = "etcd-ca"
	APIServer     = "apiserver"
	APIServerEtcd = "apiserver-etcd-client"
	FrontProxy    = "front-proxy-client"
	EtcdServer    = "etcd-server"
	ServiceTokens = "service-accounts"
)

// Client is a component that talks to the API server by certificate.
type Client struct {
	Name   string // of its kubeconfig: NAME.kubeconfig
	User   string
	Groups []string
}

// Clients that a cluster's own components use.
var (
	Admin             = Client{Name: "admin", User: "localkube-admin", Groups: []string{"system:masters"}}
	ControllerManager = Client{Name: "kube-controller-manager", User: "system:kube-controller-manager"}
	Scheduler         = Client{Name: "kube-scheduler", User: "system:kube-scheduler"}
	Kwok              = Client{Name: "kwok", User: "localkube-kwok", Groups: []string{"system:masters"}}

	clients = []Client{Admin, ControllerManager, Scheduler, Kwok}
)

type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// Ensure makes whatever is missing.
func Ensure(dir clusterdir.Dir) error {
	cas := map[string]*pair{}
	for _, name := range []string{CA, FrontProxyCA, EtcdCA} {
		ca, err := ensure(dir, name, nil, &x509.Certificate{
			Subject:               pkix.Name{CommonName: "localkube-" + name},
			IsCA:                  true,
			BasicConstraintsValid: true,
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		})
		if err != nil {
			return err
		}
		cas[name] = ca
	}

	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
	serverAndClient := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	type leaf struct {
		name, ca string
		cert     x509.Certificate
	}
	leaves := []leaf{
		{APIServer, CA, x509.Certificate{
			Subject:     pkix.Name{CommonName: "kube-apiserver"},
			DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			IPAddresses: loopback,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}},
		{EtcdServer, EtcdCA, x509.Certificate{
			Subject: pkix.Name{CommonName: "etcd"}, DNSNames: []string{"localhost"}, IPAddresses: loopback, ExtKeyUsage: serverAndClient,
		}},
		{APIServerEtcd, EtcdCA, x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: client}},
		{FrontProxy, FrontProxyCA, x509.Certificate{Subject: pkix.Name{CommonName: "front-proxy-client"}, ExtKeyUsage: client}},
	}
	for _, c := range clients {
		subject := pkix.Name{CommonName: c.User, Organization: c.Groups}
		leaves = append(leaves, leaf{c.Name, CA, x509.Certificate{Subject: subject, ExtKeyUsage: client}})
	}
	for _, l := range leaves {
		l.cert.KeyUsage = x509.KeyUsageDigitalSignature
		if _, err := ensure(dir, l.name, cas[l.ca], &l.cert); err != nil {
			return err
		}
	}
	_, err := ensureKey(dir, ServiceTokens)
	return err
}

// ensure loads the named pair, or issues it; no issuer means self-signed.
func ensure(dir clusterdir.Dir, name string, issuer *pair, template *x509.Certificate) (*pair, error) {
	key, err := ensureKey(dir, name)
	if err != nil {
		return nil, err
	}
	path := dir.PKI(name + ".crt")
	data, err := ensureFile(path, func() ([]byte, error) { return issue(template, key, issuer) })
	if err != nil {
		return nil, err
	}
	certs, err := cert.ParseCertsPEM(data)
	if err != nil {
		return nil, damaged(dir, path, err)
	}
	return &pair{cert: certs[0], key: key}, nil
}

func ensureKey(dir clusterdir.Dir, name string) (crypto.Signer, error) {
	path := dir.PKI(name + ".key")
	data, err := ensureFile(path, keyutil.MakeEllipticPrivateKeyPEM)
	if err != nil {
		return nil, err
	}
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, damaged(dir, path, err)
	}
	return key.(crypto.Signer), nil
}

// ensureFile reads a file, and makes it first where there is none.
func ensureFile(path string, content func() ([]byte, error)) ([]byte, error) {
	data, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	if data, err = content(); err != nil {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	return data, clusterdir.WriteFile(path, data)
}

func damaged(dir clusterdir.Dir, path string, err error) error {
	return fmt.Errorf("%s is damaged: %w: `localkube down --dir %s --delete` starts afresh", path, err, dir)
}

func issue(template *x509.Certificate, key crypto.Signer, issuer *pair) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt64))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-5 * time.Minute)
	template.NotAfter = time.Now().Add(validity)

	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), err
}
