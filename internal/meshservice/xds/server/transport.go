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

// Transport returns TLS credentials with a certificate that is looked up for each connection, and with client CAs that are
// read from a file for each connection: both may change at any time. Without a file, client certificates are not requested.
func Transport(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), authorities string, log logr.Logger) (credentials.TransportCredentials, error) {
	fixed := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, GetCertificate: certificate,
		// A resumed TLS session would outlive a removed CA.
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
		// Without a certificate the Identifier rejects the stream with a message.
		now.ClientAuth, now.ClientCAs = tls.VerifyClientCertIfGiven, trusted.current()
		return now, nil
	}
	return credentials.NewTLS(config), nil
}

// clientCAs are the CAs of a file.
type clientCAs struct {
	file string
	log  logr.Logger

	mu   sync.Mutex
	text string
	pool *x509.CertPool
}

// current returns the CAs of the file, or the previous ones while the file cannot be read.
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
