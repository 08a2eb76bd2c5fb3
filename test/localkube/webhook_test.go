//go:build linux

package localkube_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// webhook is a local process as an operator would be: it refuses objects called
// "denied" and converts between versions, over TLS with a CA of its own.
type webhook struct {
	url, address string
	ca           []byte

	mu    sync.Mutex
	names []string // that it was called by
}

// startWebhook serves under the given TLS name, and on 127.0.0.1.
func startWebhook(t *testing.T, name string) *webhook {
	t.Helper()
	hook := &webhook{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /validate", hook.validate)
	mux.HandleFunc("POST /convert", hook.convert)
	server := httptest.NewUnstartedServer(mux)
	ca, certificate := issue(t, name)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of callers that do not trust it
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	hook.url, hook.address, hook.ca = server.URL, server.Listener.Addr().String(), ca
	return hook
}

func (h *webhook) calledBy() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.names...)
}

func (h *webhook) note(r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names = append(h.names, r.TLS.ServerName)
}

func (h *webhook) validate(w http.ResponseWriter, r *http.Request) {
	h.note(r)
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if review.Request.Name == "denied" {
		review.Response.Allowed, review.Response.Result = false, &metav1.Status{Message: "the webhook says no"}
	}
	_ = json.NewEncoder(w).Encode(review)
}

func (h *webhook) convert(w http.ResponseWriter, r *http.Request) {
	h.note(r)
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		object.SetAPIVersion(review.Request.DesiredAPIVersion)
		_ = unstructured.SetNestedField(object.Object, "the webhook", "convertedBy")
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: &object})
	}
	_ = json.NewEncoder(w).Encode(review)
}

// issue makes a CA and a serving certificate for the name and 127.0.0.1.
func issue(t *testing.T, name string) (ca []byte, certificate tls.Certificate) {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca of " + name},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	var keys [2]*ecdsa.PrivateKey
	for i, template := range []*x509.Certificate{authority, leaf} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, keys[0].Public(), keys[0])
	if err != nil {
		t.Fatal(err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, keys[1].Public(), keys[0])
	if err != nil {
		t.Fatal(err)
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER})
	return ca, tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: keys[1]}
}

// portOf an address like 127.0.0.1:8443.
func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }
