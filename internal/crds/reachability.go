package crds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// webhookExists tells whether a webhook exists. Behind a Service, only the Service is checked: its pods may be back at any
// time, and cannot be called from everywhere.
func (in *installer) webhookExists(ctx context.Context, config *apiextensionsv1.WebhookClientConfig) bool {
	if config.Service != nil {
		_, err := in.services.Services(config.Service.Namespace).Get(ctx, config.Service.Name, metav1.GetOptions{})
		return !apierrors.IsNotFound(err)
	}
	target, err := url.Parse(ptr.Deref(config.URL, ""))
	if err != nil {
		return false
	}
	if ip := net.ParseIP(target.Hostname()); ip == nil || !ip.IsLoopback() {
		return true // only webhooks of this machine can be checked
	}
	return isReachable(ctx, target.String(), config.CABundle)
}

// isReachable tells whether a trusted server answers at a URL. Another process that happens to have got the same port is not
// trusted.
func isReachable(ctx context.Context, address string, bundle []byte) bool {
	// A closed port refuses at once. A server may be busy, and must not be taken for gone.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(bundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return true
}
