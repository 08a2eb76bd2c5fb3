package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/credentials"

	"github.com/fairlead/fairlead/internal/certs"
)

// Transport returns TLS credentials of files that are read for each connection: they may change at any time. Without
// client CAs, client certificates are not requested.
func Transport(certificateFile, keyFile, clientCAs string, log logr.Logger) (credentials.TransportCredentials, error) {
	certificate, err := load(parseKeyPair, log, certificateFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read --mesh-cert-file and --mesh-key-file: %w", err)
	}
	fixed := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate.current(), nil },
		// A resumed TLS session would outlive a removed CA.
		SessionTicketsDisabled: true,
	}
	if clientCAs == "" {
		return credentials.NewTLS(fixed), nil
	}
	trusted, err := load(parseClientCAs, log, clientCAs)
	if err != nil {
		return nil, fmt.Errorf("read --mesh-client-ca-file: %w", err)
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

func parseKeyPair(texts [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err == nil {
		certs.RecordValidity("mesh", pair.Leaf)
	}
	return &pair, err
}

func parseClientCAs(texts [][]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(texts[0]) {
		return nil, fmt.Errorf("no PEM certificate: write at least one")
	}
	return pool, nil
}

// reloaded is the value of files. They are read, not watched: the system may have no watch to give, and nothing is served
// between two connections.
type reloaded[T any] struct {
	files []string
	parse func(texts [][]byte) (T, error)
	log   logr.Logger

	mu    sync.Mutex
	texts [][]byte
	value T
}

// load reads files for the first time.
func load[T any](parse func([][]byte) (T, error), log logr.Logger, files ...string) (*reloaded[T], error) {
	r := &reloaded[T]{files: files, parse: parse, log: log}
	return r, r.read()
}

// current returns the value of the files, or the previous one while they cannot be read.
func (r *reloaded[T]) current() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.read(); err != nil {
		r.log.Error(err, "keeping the previous certificates")
	}
	return r.value
}

func (r *reloaded[T]) read() error {
	var texts [][]byte
	for _, file := range r.files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	if slices.EqualFunc(texts, r.texts, bytes.Equal) {
		return nil
	}
	value, err := r.parse(texts)
	if err != nil {
		return fmt.Errorf("%s: %w", r.files[0], err)
	}
	r.texts, r.value = texts, value
	return nil
}
