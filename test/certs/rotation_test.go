// Package certs_test rotates certificates while an API server calls the webhook that presents them.
package certs_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/certs"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/rollout/conversion"
	"github.com/fairlead/fairlead/test/cluster"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.RunWith(m, cluster.Options{Profile: "hub"}))
}

const crdName = "materializes.materialize.cloud"

// TestRotation keeps asking for an object in the version that it is not stored in, while certificates and authorities
// come and go every few seconds. No request may fail.
func TestRotation(t *testing.T) {
	c := cluster.Shared(t)
	w := newWebhook(t, c.Config(), c.Namespace(t))
	object := w.object(t)

	served, authorities := map[string]bool{}, map[string]bool{}
	var failures atomic.Int64
	var first sync.Once
	var requests sync.WaitGroup
	asked := 0
	stop := time.After(45 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-stop:
			running = false
		case <-tick.C:
			asked++
			requests.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				got := &v1alpha1.Materialize{}
				if err := w.Get(ctx, client.ObjectKeyFromObject(object), got); err != nil {
					failures.Add(1)
					first.Do(func() { t.Errorf("a request failed: %v", err) })
				}
			})
			certificate, err := w.source.GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			served[certificate.Leaf.SerialNumber.String()] = true
			authorities[certificate.Leaf.Issuer.String()] = true
		}
	}
	requests.Wait()
	t.Logf("%d requests, %d calls of the webhook, %d certificates of %d authorities", asked, w.calls.Load(), len(served), len(authorities))
	if n := failures.Load(); n > 0 {
		t.Errorf("%d of %d requests failed", n, asked)
	}
	if len(served) < 5 || len(authorities) < 2 {
		t.Errorf("only %d certificates of %d authorities were served", len(served), len(authorities))
	}
	if w.calls.Load() < int64(asked) {
		t.Errorf("%d requests called the webhook %d times only", asked, w.calls.Load())
	}
	trusted := bytes.Count(w.bundle(t), []byte("BEGIN CERTIFICATE"))
	if trusted > 2 {
		t.Errorf("%d authorities are trusted", trusted)
	}
}

// webhook is what the operator runs, with certificates that do not last.
type webhook struct {
	client.Client
	namespace string
	source    *certs.Source
	calls     atomic.Int64
}

func newWebhook(t *testing.T, config *rest.Config, namespace string) *webhook {
	t.Helper()
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v1alpha2.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	w := &webhook{namespace: namespace}
	if w.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	w.source, err = certs.New(config, certs.Options{
		Kind: certs.SelfSigned, Namespace: namespace, Name: "certificate", Names: []string{"127.0.0.1"}, AwaitTrust: true,
		Poll: 100 * time.Millisecond, Settle: 500 * time.Millisecond, Overlap: 2 * time.Second,
		Lifetimes: certs.Lifetimes{Authority: 24 * time.Second, Certificate: 6 * time.Second},
		Log:       logr.Discard(),
	})
	if err != nil {
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
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := w.Create(t.Context(), object)
		if err == nil {
			err = w.Get(t.Context(), client.ObjectKeyFromObject(object), &v1alpha1.Materialize{})
		}
		if client.IgnoreAlreadyExists(err) == nil {
			return object
		}
		if time.Now().After(deadline) {
			t.Fatal(fmt.Errorf("make an object: %w", err))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (w *webhook) bundle(t *testing.T) []byte {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: crdName}, crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Conversion.Webhook.ClientConfig.CABundle
}
