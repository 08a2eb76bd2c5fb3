package certs_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/certs"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/rollout/conversion"
	"github.com/fairlead/fairlead/test/cluster"
)

const crdName = "materializes.materialize.cloud"

// TestRotation keeps asking for an object in the version that it is not stored in, while certificates and authorities
// come and go every few seconds. No request may fail.
func TestRotation(t *testing.T) {
	t.Run("self-signed", func(t *testing.T) {
		w := newWebhook(t, certs.Options{
			Kind: certs.SelfSigned, Name: "certificate",
			Lifetimes: certs.Lifetimes{Authority: 36 * time.Second, Certificate: 9 * time.Second},
		})
		w.callFor(t, 36*time.Second, 5, 2)
	})
	t.Run("issued by others", func(t *testing.T) {
		others := &issuer{dir: t.TempDir()}
		if err := others.issue(); err != nil {
			t.Fatal(err)
		}
		w := newWebhook(t, certs.Options{Kind: certs.CertManager, Directory: others.dir})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go others.run(ctx, t, 4*time.Second)
		w.callFor(t, 20*time.Second, 4, 4)
	})
}

// callFor has the API server call the webhook fifty times a second, while at least so many certificates, of so many
// authorities, are served.
func (w *webhook) callFor(t *testing.T, span time.Duration, certificates, authorities int) {
	t.Helper()
	served, signed := map[string]bool{}, map[string]bool{}
	asked := askFor(t, w.Client, client.ObjectKeyFromObject(w.object(t)))
	stop := time.After(span)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-stop:
			running = false
		case <-tick.C:
			certificate, err := w.source.GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			served[certificate.Leaf.SerialNumber.String()] = true
			signed[certificate.Leaf.Issuer.String()] = true
		}
	}
	asked.end()
	total := asked.asked.Load()
	t.Logf("%d requests, %d calls of the webhook, %d certificates of %d authorities", total, w.calls.Load(), len(served), len(signed))
	if len(served) < certificates || len(signed) < authorities {
		t.Errorf("only %d certificates of %d authorities were served", len(served), len(signed))
	}
	if w.calls.Load() < total {
		t.Errorf("%d requests called the webhook %d times only", total, w.calls.Load())
	}
	if trusted := bytes.Count(w.bundle(t), []byte("BEGIN CERTIFICATE")); trusted > 3 {
		t.Errorf("%d authorities are trusted, as if none were ever dropped", trusted)
	}
}

// webhook is what the operator runs, with certificates that do not last.
type webhook struct {
	client.Client
	namespace string
	source    *certs.Source
	calls     atomic.Int64
}

func newWebhook(t *testing.T, options certs.Options) *webhook {
	t.Helper()
	c := cluster.Shared(t)
	config, namespace := c.Config(), c.Namespace(t)
	w := &webhook{namespace: namespace}
	var err error
	if w.Client, err = client.New(config, client.Options{Scheme: newScheme(t)}); err != nil {
		t.Fatal(err)
	}
	options.Namespace, options.Names, options.AwaitTrust = namespace, []string{"127.0.0.1"}, true
	options.Poll, options.Settle, options.Overlap = 100*time.Millisecond, 500*time.Millisecond, 2*time.Second
	options.Log = logr.Discard()
	if w.source, err = certs.New(config, options); err != nil {
		t.Fatal(err)
	}
	if err := w.source.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: w.source.GetCertificate, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	convert := conversion.Handler(logr.Discard())
	mux.HandleFunc(crds.ConversionPath, func(out http.ResponseWriter, r *http.Request) {
		w.calls.Add(1)
		convert.ServeHTTP(out, r)
	})
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}
	// Every call is a connection of its own, and so has to trust the certificate of the moment.
	server.SetKeepAlivesEnabled(false)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	registered := &crds.Webhook{URL: "https://127.0.0.1:" + port, Trust: w.source, Leading: func() bool { return true }}

	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = server.Serve(listener) })
	all.Go(func() { _ = w.source.Run(ctx) })
	if _, err := crds.Install(ctx, config, crds.Options{Names: []string{crdName}, Webhook: registered}); err != nil {
		t.Fatal(err)
	}
	all.Go(func() {
		_ = registered.Keep(ctx, config, crds.KeepOptions{Names: []string{crdName}, Every: 200 * time.Millisecond, Log: logr.Discard()})
	})
	t.Cleanup(func() {
		cancel()
		_ = server.Close()
		all.Wait()
	})
	return w
}

// object is one that is stored in a version, and will be asked for in another.
func (w *webhook) object(t *testing.T) *v1alpha2.Materialize {
	t.Helper()
	object := &v1alpha2.Materialize{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: w.namespace}}
	object.Spec.EnvironmentdImageRef, object.Spec.BackendSecretName = "materialize/environmentd:v1", "backend"
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		if client.IgnoreAlreadyExists(w.Create(ctx, object)) != nil {
			return false, nil
		}
		return w.Get(ctx, client.ObjectKeyFromObject(object), &v1alpha1.Materialize{}) == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func (w *webhook) bundle(t *testing.T) []byte {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: crdName}, crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Conversion.Webhook.ClientConfig.CABundle
}
