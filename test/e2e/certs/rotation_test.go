package certs_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/certs"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/rollout/conversion"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const crdName = "materializes.materialize.cloud"

// TestStoryRotation keeps asking for an object in the version that it is not stored in, while certificates and authorities
// come and go. No request may fail.
func TestStoryRotation(t *testing.T) {
	t.Run("self-signed", func(t *testing.T) {
		w := newWebhook(t, certs.Options{
			Kind: certs.SelfSigned, Name: "certificate", Lifetimes: certs.Lifetimes{Authority: 30 * time.Minute, Certificate: 10 * time.Minute},
		})
		calls := w.call(t)
		for _, authority := range []bool{false, false, true, false} {
			if w.rotate(t, calls, func() { w.clock.pass(7 * time.Minute) }) != authority {
				t.Errorf("want another authority: %t", authority)
			}
		}
		w.enough(t, calls)
	})
	t.Run("issued by others", func(t *testing.T) {
		others := &issuer{dir: t.TempDir()}
		if err := others.issue(); err != nil {
			t.Fatal(err)
		}
		w := newWebhook(t, certs.Options{Kind: certs.CertManager, Directory: others.dir})
		calls := w.call(t)
		for range 2 {
			issue := func() {
				if err := others.issue(); err != nil {
					t.Fatal(err)
				}
			}
			if !w.rotate(t, calls, issue) {
				t.Error("each of these certificates is its own authority")
			}
		}
		w.enough(t, calls)
	})
}

// call has the API server call the webhook.
func (w *webhook) call(t *testing.T) *load {
	t.Helper()
	calls := askFor(t, w.Client, client.ObjectKeyFromObject(w.object(t)))
	calls.all(t)
	return calls
}

// rotate makes what brings another certificate happen, and waits until that is served, and until the authority that is no longer needed is not trusted any
// more. It tells whether there is another authority. All that depends on time waits for the test to move the clock, which
// it does when the API server, and all requests that it has begun to answer, trust the next certificate.
func (w *webhook) rotate(t *testing.T, calls *load, happen func()) bool {
	t.Helper()
	before, published := w.serving(t), w.trust.last()
	happen()
	wait.Until(t, func(context.Context) error {
		if w.serving(t).Equal(before) && bytes.Equal(w.trust.last(), published) {
			return errors.New("there is no other certificate")
		}
		return nil
	})
	if bytes.Equal(w.trust.last(), published) {
		calls.all(t)
		return false
	}
	if !w.serving(t).Equal(before) {
		t.Error("a certificate is served whose authority was published just now")
	}
	w.sentinel.takenIn(t)
	calls.all(t)
	w.clock.pass(settle)
	wait.Until(t, func(context.Context) error {
		if w.serving(t).Equal(before) {
			return errors.New("the certificate is still the same")
		}
		return nil
	})
	calls.all(t)
	if trusted := count(w.bundle(t)); trusted != 2 {
		t.Errorf("%d authorities are trusted, want the one before and the next", trusted)
	}
	w.trust.again(t)
	w.clock.pass(overlap)
	wait.Until(t, func(context.Context) error {
		if count(w.bundle(t)) > 1 {
			return errors.New("the authority before is still trusted")
		}
		return nil
	})
	w.sentinel.takenIn(t)
	calls.all(t)
	return true
}

func count(bundle []byte) int { return bytes.Count(bundle, []byte("BEGIN CERTIFICATE")) }

// enough fails the test unless all requests have called the webhook.
func (w *webhook) enough(t *testing.T, calls *load) {
	t.Helper()
	calls.end()
	if total := calls.total(); w.calls.Load() < total {
		t.Errorf("%d requests called the webhook %d times only", total, w.calls.Load())
	}
}

// clock stands still unless the test moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// What the source waits for, by the clock of the test.
const (
	settle  = 5 * time.Second
	overlap = 10 * time.Second
)

// observedTrust is that of a source, and what the source has been told of.
type observedTrust struct {
	crds.Trust
	mu        sync.Mutex
	published []byte
	times     int
}

func (o *observedTrust) Published(bundle []byte) {
	o.Trust.Published(bundle)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.published, o.times = bytes.Clone(bundle), o.times+1
}

// last is what the source was last told.
func (o *observedTrust) last() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.published
}

// again waits until the source is told what is published once more, from the beginning of that to its end.
func (o *observedTrust) again(t testing.TB) {
	t.Helper()
	times := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.times
	}
	enough := times() + 2
	wait.Until(t, func(context.Context) error {
		if times() < enough {
			return errors.New("the source was not told what is published")
		}
		return nil
	})
}

// webhook is what the operator runs, with certificates that do not last.
type webhook struct {
	client.Client
	namespace string
	clock     *clock
	source    *certs.Source
	trust     *observedTrust
	sentinel  *sentinel
	calls     atomic.Int64
}

func newWebhook(t *testing.T, options certs.Options) *webhook {
	t.Helper()
	c := cluster.Shared(t)
	config, namespace := c.Config(), c.Namespace(t)
	w := &webhook{namespace: namespace, clock: &clock{now: time.Now()}}
	var err error
	if w.Client, err = client.New(config, client.Options{Scheme: newScheme(t)}); err != nil {
		t.Fatal(err)
	}
	options.Namespace, options.Names, options.AwaitTrust = namespace, []string{"127.0.0.1"}, true
	options.Poll, options.Settle, options.Overlap = 50*time.Millisecond, settle, overlap
	options.Now, options.Log = w.clock.read, logr.Discard()
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
	convert := conversion.Handler(logr.Discard(), conversion.DefaultMemory)
	mux.HandleFunc(crds.ConversionPath, func(out http.ResponseWriter, r *http.Request) {
		w.calls.Add(1)
		convert.ServeHTTP(out, r)
	})
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}
	// Every call is a connection of its own, and so has to trust the certificate of the moment.
	server.SetKeepAlivesEnabled(false)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	w.trust = &observedTrust{Trust: w.source}
	elected := make(chan struct{})
	close(elected)
	registered := &crds.Webhook{URL: "https://127.0.0.1:" + port, Trust: w.trust, Elected: elected}

	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		_ = server.Close()
		all.Wait()
		w.forget(t)
	})
	all.Go(func() { _ = server.Serve(listener) })
	all.Go(func() { _ = w.source.Run(ctx) })
	if _, err := crds.Install(ctx, config, crds.Options{Names: []string{crdName}, Webhook: registered, Timeout: wait.Deadline()}); err != nil {
		t.Fatal(err)
	}
	all.Go(func() {
		_ = registered.ReconcileConversion(ctx, config, crds.ReconcileConversionOptions{Names: []string{crdName}, Every: 100 * time.Millisecond, Log: logr.Discard()})
	})
	w.sentinel = newSentinel(t, w.Client, namespace)
	// The first authority has been trusted for long enough when the test begins.
	w.trust.again(t)
	w.clock.pass(settle)
	return w
}

// forget has the CRD trust nobody, for the next webhook to begin with.
func (w *webhook) forget(t testing.TB) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":null}}}}}`))
	if err := w.Patch(context.Background(), crd, patch); err != nil {
		t.Error(err)
	}
}

func (w *webhook) serving(t testing.TB) *x509.Certificate {
	t.Helper()
	certificate, err := w.source.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return certificate.Leaf
}

// object is one that is stored in a version, and will be asked for in another.
func (w *webhook) object(t *testing.T) *v1alpha2.Materialize {
	t.Helper()
	object := &v1alpha2.Materialize{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: w.namespace}}
	object.Spec.EnvironmentdImageRef, object.Spec.BackendSecretName = "materialize/environmentd:v1", "backend"
	wait.Until(t, func(ctx context.Context) error {
		if err := w.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		return w.Get(ctx, client.ObjectKeyFromObject(object), &v1alpha1.Materialize{})
	})
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
