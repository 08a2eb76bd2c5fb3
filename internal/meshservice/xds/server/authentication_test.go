package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/callers"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const hour = time.Hour

// secured serves with certificates of a directory, which it gives with the authority that signed them.
func secured(t *testing.T, options Options) (string, string, *callers.Authority) {
	t.Helper()
	directory := t.TempDir()
	authority := renew(t, directory)
	transport, err := Transport(
		filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"), filepath.Join(directory, "ca.crt"), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, options, transport), directory, authority
}

// renew writes a certificate of another authority into a directory.
func renew(t *testing.T, directory string) *callers.Authority {
	t.Helper()
	authority, err := callers.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(time.Now().Add(hour), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"ca.crt": authority.PEM, "tls.crt": pair.Certificate, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return authority
}

// as connects with the certificate of an authority, or with none.
func as(t *testing.T, server, signer *callers.Authority, until time.Time, names ...string) credentials.TransportCredentials {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(server.PEM)
	if signer == nil {
		return credentials.NewTLS(config)
	}
	pair, err := signer.Issue(until, names...)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	// Shown whatever the server asks for, as one does who hopes to get away with it.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	return credentials.NewTLS(config)
}

func TestCertificates(t *testing.T) {
	store := NewStore()
	store.Set(cart, config(1, "a"))
	address, _, ours := secured(t, Options{Store: store, Identify: ByCertificate(nil)})
	theirs, err := callers.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(hour)
	for name, c := range map[string]struct {
		transport credentials.TransportCredentials
		code      codes.Code
		says      string
	}{
		"its own":           {as(t, ours, ours, soon, URI(cart)), codes.OK, ""},
		"one of two":        {as(t, ours, ours, soon, "spiffe://default/ns/shop/sa/cart", URI(cart)), codes.OK, ""},
		"none":              {as(t, ours, nil, soon), codes.Unauthenticated, "proxy default.cart-0.shop presented no client certificate: a certificate for spiffe://default/ns/shop/proxy/cart-0 is required"},
		"another proxy's":   {as(t, ours, ours, soon, "spiffe://default/ns/shop/proxy/cart-1"), codes.PermissionDenied, "for spiffe://default/ns/shop/proxy/cart-1: proxy default.cart-0.shop needs one for spiffe://default/ns/shop/proxy/cart-0"},
		"another mesh's":    {as(t, ours, ours, soon, "spiffe://other/ns/shop/proxy/cart-0"), codes.PermissionDenied, "spiffe://other/ns/shop/proxy/cart-0"},
		"of no proxy":       {as(t, ours, ours, soon, "cart.example"), codes.PermissionDenied, "no URI at all"},
		"expired":           {as(t, ours, ours, time.Now().Add(-time.Minute), URI(cart)), codes.Unavailable, ""},
		"another authority": {as(t, ours, theirs, soon, URI(cart)), codes.Unavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			connection := dial(t, address, c.transport)
			if c.code == codes.Unavailable {
				ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline())
				defer cancel()
				err := connection.Invoke(ctx, "/any/method", &emptypb.Empty{}, &emptypb.Empty{})
				if err == nil || status.Code(err) == codes.Unimplemented {
					t.Errorf("it got as far as %v", err)
				}
				return
			}
			m := connect(t, connection, cart.String(), false)
			m.ask(resource.Listener)
			if c.code == codes.OK {
				eventually(t, "its listener", func() bool { return m.knows(resource.Listener) == "a" })
				return
			}
			if err := m.end(t); status.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the stream ended with %v, want %s: %s", err, c.code, c.says)
			}
		})
	}
}

func TestURI(t *testing.T) {
	if got := URI(model.ProxyID{Mesh: "default", Name: "cart"}); got != "spiffe://default/proxy/cart" {
		t.Error(got)
	}
}

// later is ByCertificate with a clock that the test sets.
type later struct{ by *atomic.Int64 }

func (l later) Identify(ctx context.Context, claimed model.ProxyID) error {
	return checkCertificate(certificateOf(ctx), claimed, time.Now().Add(time.Duration(l.by.Load())))
}

// A certificate is looked at again while a stream lasts.
func TestCertificateEnds(t *testing.T) {
	store := NewStore()
	store.Set(cart, config(1, "a"))
	clock := later{&atomic.Int64{}}
	address, _, ours := secured(t, Options{Store: store, Identify: clock.Identify, RecheckInterval: 10 * time.Millisecond})
	m := connect(t, dial(t, address, as(t, ours, ours, time.Now().Add(hour), URI(cart))), cart.String(), true)
	m.ask(resource.Listener)
	eventually(t, "its listener", func() bool { return m.knows(resource.Listener) == "a" })
	clock.by.Store(int64(2 * hour))
	if err := m.end(t); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "expired at") {
		t.Error(err)
	}
}

// Other certificates in the directory are used for the next connection, while streams go on.
func TestCertificatesAreReadAnew(t *testing.T) {
	store := NewStore()
	store.Set(cart, config(1, "a"))
	address, directory, ours := secured(t, Options{Store: store, Identify: ByCertificate(nil)})
	soon := time.Now().Add(hour)
	before := connect(t, dial(t, address, as(t, ours, ours, soon, URI(cart))), cart.String(), true)
	before.ask(resource.Listener)
	eventually(t, "its listener", func() bool { return before.knows(resource.Listener) == "a" })

	next := renew(t, directory)
	transport := as(t, next, next, soon, URI(cart))
	eventually(t, "a connection with the new ones", func() bool {
		return status.Code(dial(t, address, transport).Invoke(t.Context(), "/any/method", &emptypb.Empty{}, &emptypb.Empty{})) == codes.Unimplemented
	})
	after := connect(t, dial(t, address, transport), cart.String(), false)
	after.ask(resource.Listener)
	eventually(t, "the listener of the next", func() bool { return after.knows(resource.Listener) == "a" })
	store.Set(cart, config(1, "a", "b"))
	eventually(t, "the first stream goes on", func() bool { return before.knows(resource.Listener) == "a b" })

	for _, name := range []string{"ca.crt", "tls.crt"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte("no certificate"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := connect(t, dial(t, address, transport), cart.String(), false)
	m.ask(resource.Listener)
	eventually(t, "what cannot be read changes nothing", func() bool { return m.knows(resource.Listener) == "a b" })
}

func TestUnreadableCertificateFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		text string
		says string
	}{
		"no CA":          {"ca.crt", "x", "read --mesh-client-ca-file: FILE: no PEM certificate: write at least one"},
		"no certificate": {"tls.crt", "x", "read --mesh-cert-file and --mesh-key-file: FILE: tls: failed to find any PEM data"},
		"no CA file":     {"ca.crt", "", "read --mesh-client-ca-file: open FILE: no such file"},
		"no key file":    {"tls.key", "", "read --mesh-cert-file and --mesh-key-file: open FILE: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			renew(t, directory)
			file := filepath.Join(directory, c.file)
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if c.text != "" {
				if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Transport(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"), filepath.Join(directory, "ca.crt"), logr.Discard())
			if says := strings.ReplaceAll(c.says, "FILE", file); err == nil || !strings.HasPrefix(err.Error(), says) {
				t.Errorf("%v, not: %s", err, says)
			}
		})
	}
}
