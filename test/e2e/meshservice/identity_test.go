package meshservice_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// audience is that of the tokens that proxies show.
const audience = "fairlead-mesh"

// bearer shows a token.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// authority signs certificates.
type authority struct {
	key         *rsa.PrivateKey
	certificate *x509.Certificate
	serial      int64
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "test"}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{key: key, certificate: certificate, serial: 1}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue signs for whoever is named, until then.
func (a *authority) issue(t testing.TB, until time.Time, ip net.IP, uri string) (certificate, key []byte) {
	t.Helper()
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	if uri != "" {
		parsed, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = []*url.URL{parsed}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, own.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err = cert.EncodeCertificates(signed)
	if err != nil {
		t.Fatal(err)
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(own)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// knock says whether a client that claims to be a proxy is given anything, and how it is refused if it is not.
func (s *stage) knock(t testing.TB, claimed model.ProxyID, config *tls.Config, options ...grpc.DialOption) error {
	t.Helper()
	p := &proxy{id: claimed}
	p.dialAt(t, s.servesAt(t), isNotDecided, append(options, grpc.WithTransportCredentials(credentials.NewTLS(config)))...)
	var refusal error
	wait.Until(t, func(context.Context) error {
		if refusal = p.end(); refusal == nil && len(p.config()) == 0 {
			return fmt.Errorf("%s is neither served nor refused", claimed)
		}
		return nil
	})
	if got := p.config(); refusal != nil && len(got) > 0 {
		t.Errorf("before it was refused, %s got %d resources", claimed, len(got))
	}
	return refusal
}

func refusedWith(t testing.TB, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("it ended with %s, want %s: %v", got, want, err)
	}
}

// TestIdentity: a proxy gets its own configuration or nothing. It ends the operator to start one that looks who is there, by
// token or by certificate.
func TestIdentity(t *testing.T) {
	s := newStage(t, "")
	s.create(t, service("backend"))
	s.runs(t, deployment("backend", 8080))
	cart, checkout := s.runs(t, deployment("cart", 0)), s.runs(t, deployment("checkout", 0))
	ca := newAuthority(t)
	certificate, key := ca.issue(t, time.Now().Add(time.Hour), net.ParseIP(operatorHost), "")
	authorities, err := cert.EncodeCertificates(ca.certificate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Operator.Kill()
		if err := s.operate(context.Background(), "--mesh-insecure"); err != nil {
			t.Error(err)
		}
	})
	s.again(t, "--mesh-cert-file", write(t, "tls.crt", certificate), "--mesh-key-file", write(t, "tls.key", key),
		"--mesh-client-ca-file", write(t, "ca.crt", authorities))

	t.Run("by token", func(t *testing.T) {
		trusting := &tls.Config{RootCAs: ca.pool()}
		token := func(id model.ProxyID, audience string) grpc.DialOption {
			return grpc.WithPerRPCCredentials(bearer(s.token(t, id, audience)))
		}
		if err := s.knock(t, cart, trusting, token(cart, audience)); err != nil {
			t.Errorf("its own: %v", err)
		}
		refusedWith(t, s.knock(t, checkout, trusting, token(cart, audience)), codes.PermissionDenied)
		refusedWith(t, s.knock(t, cart, trusting, token(cart, "somebody-else")), codes.Unauthenticated)
		refusedWith(t, s.knock(t, cart, trusting), codes.Unauthenticated)
		refusedWith(t, s.knock(t, cart, trusting, grpc.WithPerRPCCredentials(bearer("nonsense"))), codes.Unauthenticated)
		until := func(end time.Time) grpc.DialOption {
			return grpc.WithPerRPCCredentials(bearer(s.ending(t, s.token(t, cart, audience), end)))
		}
		if err := s.knock(t, cart, trusting, until(time.Now().Add(time.Hour))); err != nil {
			t.Errorf("its own, with another end: %v", err)
		}
		refusedWith(t, s.knock(t, cart, trusting, until(time.Now().Add(-time.Hour))), codes.Unauthenticated)
	})

	t.Run("by certificate", func(t *testing.T) {
		with := func(a *authority, id model.ProxyID, until time.Time) *tls.Config {
			uri := fmt.Sprintf("spiffe://%s/ns/%s/proxy/%s", id.Mesh, id.Namespace, id.Name)
			pair, err := tls.X509KeyPair(a.issue(t, until, nil, uri))
			if err != nil {
				t.Fatal(err)
			}
			return &tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{pair}}
		}
		soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
		if err := s.knock(t, cart, with(ca, cart, soon)); err != nil {
			t.Errorf("its own: %v", err)
		}
		refusedWith(t, s.knock(t, checkout, with(ca, cart, soon)), codes.PermissionDenied)
		if err := s.knock(t, cart, with(ca, cart, past)); err == nil {
			t.Error("an expired certificate is believed")
		}
		if err := s.knock(t, cart, with(newAuthority(t), cart, soon)); err == nil {
			t.Error("a certificate of another authority is believed")
		}
		if err := s.knock(t, cart, &tls.Config{RootCAs: ca.pool()}); err == nil {
			t.Error("a proxy that shows nothing is believed")
		}
	})
}

// token is one of the pod's service account, bound to the pod.
func (s *stage) token(t testing.TB, id model.ProxyID, audience string) string {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: id.Name}}
	if err := s.read(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod.Spec.ServiceAccountName}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: ptr.To[int64](600),
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if err := s.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// ending is a token with another end, signed again with the cluster's own key: the API server issues none for less than ten
// minutes.
func (s *stage) ending(t testing.TB, token string, end time.Time) string {
	t.Helper()
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(s.Dir, "pki", "service-accounts.key"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{}
	if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil {
		t.Fatal(err)
	}
	claims["exp"] = end.Unix()
	claims["iat"] = end.Add(-time.Hour).Unix()
	claims["nbf"] = claims["iat"]
	signing := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: parsed.Headers[0].KeyID}}
	signer, err := jose.NewSigner(signing, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return signed
}
