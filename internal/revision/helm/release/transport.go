package release

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	discoverycache "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// contextTransport fails requests of Helm to the API server once a context has ended. Most calls of Helm take no context; the
// others return early and go on in the background. With this transport, calls end soon because their requests fail.
type contextTransport struct {
	ctx  context.Context
	base http.RoundTripper
}

func (b contextTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if b.ctx.Err() != nil {
		return nil, context.Cause(b.ctx)
	}
	return b.base.RoundTrip(request.WithContext(b.ctx))
}

// configFor is the Manager's client configuration, limited to a context.
func (m *Manager) configFor(ctx context.Context) (*rest.Config, error) {
	server, _, err := rest.DefaultServerUrlFor(m.config)
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	base := cmp.Or(m.http.Transport, http.DefaultTransport)
	// Certificates, credentials and the like are in the transport already.
	return &rest.Config{
		Host: server.String(), Transport: contextTransport{ctx, base}, ContentConfig: m.config.ContentConfig,
		QPS: m.config.QPS, Burst: m.config.Burst, RateLimiter: m.config.RateLimiter,
		WarningHandlerWithContext: m.config.WarningHandlerWithContext,
	}, nil
}

// restGetter is Helm's RESTClientGetter.
type restGetter struct {
	config    *rest.Config
	mapper    meta.RESTMapper
	namespace string
}

func (g restGetter) ToRESTConfig() (*rest.Config, error) { return g.config, nil }

func (g restGetter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

func (g restGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	client, err := discovery.NewDiscoveryClientForConfig(g.config)
	if err != nil {
		return nil, err
	}
	return discoverycache.NewMemCacheClient(client), nil
}

func (g restGetter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(),
		&clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}})
}
