package operator

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead/fairlead/internal/certs"
	"github.com/fairlead/fairlead/internal/crds"
)

// webhooks are what the API server calls, on every replica, leading or not.
type webhooks struct {
	options Options
	config  *rest.Config
	log     logr.Logger
	handler http.Handler
	// converted are the CRDs whose objects are converted.
	converted []string

	source *certs.Source
	// conversion is nil where the CRDs are left to others.
	conversion *crds.Webhook
}

// newWebhooks is nil when no passage has any, or they are switched off.
func newWebhooks(config *rest.Config, options Options, passages []Passage, log logr.Logger) *webhooks {
	if disabled(options.Webhook.BindAddress) {
		return nil
	}
	mux := http.NewServeMux()
	w := &webhooks{options: options, config: config, log: log, handler: mux}
	memory := options.Webhook.conversionMemory(memoryLimit(os.DirFS("/")))
	for _, p := range passages {
		if p.Conversion != nil {
			mux.Handle(crds.ConversionPath, p.Conversion(log.WithValues("passage", p.Name), memory))
			w.converted = append(w.converted, p.CRDs...)
		}
	}
	if w.converted == nil {
		return nil
	}
	return w
}

// serve starts the server, which runs until the context ends. It loads the certificate before it opens the port.
func (w *webhooks) serve(ctx context.Context, group *errgroup.Group, ready *readiness) error {
	ready.waitingFor("the webhook certificate")
	var err error
	if w.source, err = w.newSource(); err != nil {
		return err
	}
	if err := retryTransient(ctx, w.log, startBackoff(), "load the webhook certificate", w.load); err != nil {
		return err
	}
	listener, err := w.bind(ctx)
	if err != nil {
		return fmt.Errorf("serve webhooks: %w", err)
	}
	service := w.options.Webhook.service()
	if w.options.InstallCRDs {
		w.conversion = &crds.Webhook{Service: service, URL: w.urlOf(listener), Trust: w.source}
	}
	ready.hooks.Store(w)

	serving := ctx
	if service != nil {
		serving = withDelayedCancel(ctx, shutdownDelay)
	}
	server := w.server(listener)
	group.Go(func() error { return server.Start(logr.NewContext(serving, w.log)) })
	group.Go(func() error { return w.source.Run(ctx) })
	return nil
}

// shutdownDelay is how long a replica behind a Service is still called after it was stopped.
const shutdownDelay = 3 * time.Second

// withDelayedCancel is a context that ends a while after its parent.
func withDelayedCancel(ctx context.Context, by time.Duration) context.Context {
	later, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(by, end) })
	return later
}

func (w *webhooks) newSource() (*certs.Source, error) {
	names := []string{w.options.Webhook.localHost()}
	if service := w.options.Webhook.service(); service != nil {
		names = []string{service.Name + "." + service.Namespace + ".svc"}
	}
	namespace, err := leaseNamespace(w.options.LeaderElectionNamespace, isInCluster(w.config, rest.InClusterConfig), ownNamespaceFile)
	if err != nil {
		return nil, fmt.Errorf("find the namespace of the webhook certificate: %w", err)
	}
	return certs.New(w.config, certs.Options{
		Kind: w.options.Webhook.CertificateSource, Namespace: namespace, Name: w.options.Webhook.CertificateSecret,
		Directory: w.options.Webhook.CertificateDir, Names: names, AwaitTrust: w.options.InstallCRDs, Log: w.log,
	})
}

func (w *webhooks) server(listener net.Listener) *manager.Server {
	server := newServer("webhooks", tls.NewListener(limitConnections(listener, maxConnections), &tls.Config{
		GetCertificate: w.source.GetCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	}), w.handler)
	server.Server.ErrorLog = slog.NewLogLogger(logr.ToSlogHandler(w.log.WithValues("server", "webhooks")), slog.LevelDebug)
	return server
}

// limitClients bounds how long a client may keep a request open, and how much of its headers is held. The API server itself
// gives up after 30 seconds.
func limitClients(server *http.Server) {
	server.ReadHeaderTimeout = 5 * time.Second
	server.ReadTimeout = 30 * time.Second
	server.WriteTimeout = 60 * time.Second
	server.IdleTimeout = 2 * time.Minute
	server.MaxHeaderBytes = 16 << 10
}

func (w *webhooks) urlOf(listener net.Listener) string {
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	return "https://" + net.JoinHostPort(w.options.Webhook.localHost(), port)
}

// bind opens the port. With port 0, it prefers the port that is registered in the CRDs: then nothing has to be written.
func (w *webhooks) bind(ctx context.Context) (net.Listener, error) {
	if former := w.formerAddress(ctx); former != "" {
		if listener, err := net.Listen("tcp", former); err == nil {
			return listener, nil
		}
	}
	return net.Listen("tcp", w.options.Webhook.BindAddress)
}

func (w *webhooks) formerAddress(ctx context.Context) string {
	host, port, err := net.SplitHostPort(w.options.Webhook.BindAddress)
	if err != nil || port != "0" || w.options.Webhook.Service != "" || !w.options.InstallCRDs {
		return ""
	}
	registered, err := crds.ConversionURL(ctx, w.config, w.converted[0])
	if err != nil {
		return "" // the install of the CRD reports the error
	}
	at, err := url.Parse(registered)
	if err != nil || at.Hostname() != w.options.Webhook.localHost() || at.Port() == "" {
		return ""
	}
	return net.JoinHostPort(host, at.Port())
}

// load treats every error but a missing permission as transient: cert-manager may still issue the certificate, or the user
// correct it.
func (w *webhooks) load(ctx context.Context) error {
	err := w.source.Load(ctx)
	if err == nil || apierrors.IsForbidden(err) {
		return err
	}
	return errNotYet{err}
}

// convertsKind tells whether objects of this kind are converted by the webhook.
func (w *webhooks) convertsKind(kind client.Object, scheme *runtime.Scheme) (bool, error) {
	if w == nil {
		return false, nil
	}
	gvk, err := apiutil.GVKForObject(kind, scheme)
	if err != nil {
		return false, err
	}
	// All CRDs of a passage are converted, and no two passages share a group.
	return slices.ContainsFunc(w.converted, func(name string) bool { return strings.HasSuffix(name, "."+gvk.Group) }), nil
}

// keepConversion keeps the conversion settings of the CRDs up to date with this operator and its certificate.
func (w *webhooks) keepConversion(ctx context.Context, elected <-chan struct{}) error {
	w.conversion.Elected = elected
	return w.conversion.ReconcileConversion(ctx, w.config, crds.ReconcileConversionOptions{Names: w.converted, Log: w.log})
}
