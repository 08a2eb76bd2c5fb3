package charts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
)

// transport limits requests to repositories and registries, redirected ones included.
type transport struct {
	base http.RoundTripper
}

func newTransport(caFile string) (*transport, error) {
	config := &tls.Config{}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("--chart-ca-file: %w", err)
		}
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("read the system's CAs: %w", err)
		}
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--chart-ca-file: %s holds no certificate in PEM", caFile)
		}
	}
	return &transport{base: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		IdleConnTimeout:       time.Minute,
		ForceAttemptHTTP2:     true,
	}}, nil
}

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme == "http" && !loopback(request.URL.Hostname()) {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errors.New("plain http is for this machine only")
	}
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{ReadCloser: response.Body, left: archive.MaxDecompressedChartSize}
	return response, nil
}

// boundedBody keeps an endless answer from filling the memory.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("the answer is larger than any chart may be")
	}
	return n, err
}

// ContextTransport ends requests with a context, for clients of Helm that take none.
type ContextTransport struct {
	Context context.Context
	Base    http.RoundTripper
}

// RoundTrip sends a request, unless the context has ended.
func (t ContextTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.Context.Err() != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, context.Cause(t.Context)
	}
	return t.Base.RoundTrip(request.WithContext(t.Context))
}
