package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/credentials"
)

// Transport is TLS with a certificate that is looked up for each connection, and with the authorities of proxies in a
// file that is read for each: either may change at any time. Without a file no certificates are asked of proxies.
func Transport(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), authorities string, log logr.Logger) (credentials.TransportCredentials, error) {
	fixed := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, GetCertificate: certificate,
		// A resumed session would outlive the authority that it was verified with.
		SessionTicketsDisabled: true,
	}
	if authorities == "" {
		return credentials.NewTLS(fixed), nil
	}
	trusted := &clientCAs{file: authorities, log: log}
	if err := trusted.read(); err != nil {
		return nil, err
	}
	config := fixed.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := fixed.Clone()
		// Who shows none is told what it needs, in words: the identifier does.
		now.ClientAuth, now.ClientCAs = tls.VerifyClientCertIfGiven, trusted.current()
		return now, nil
	}
	return credentials.NewTLS(config), nil
}

// clientCAs are those of a file.
type clientCAs struct {
	file string
	log  logr.Logger

	mu   sync.Mutex
	text string
	pool *x509.CertPool
}

// current are those of the file, or those that it had as long as it cannot be read.
func (a *clientCAs) current() *x509.CertPool {
	if err := a.read(); err != nil {
		a.log.Error(err, "keeping the previous client CA")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pool
}

func (a *clientCAs) read() error {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return fmt.Errorf("read the client CA: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if string(text) == a.text {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("client CA file %s has no PEM certificate: write at least one", a.file)
	}
	a.text, a.pool = string(text), pool
	return nil
}
