package certs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/certs"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/chart"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// TestCertManager has cert-manager's own controllers issue and renew what the chart asks for.
func TestCertManager(t *testing.T) {
	binary := certManager(t)
	w := newWorld(t, "shop")
	values := map[string]any{"operator": map[string]any{"certificate": map[string]any{"source": certs.CertManager}}}
	release, err := chart.Render("fairlead", w.namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	w.installCertManager()
	w.eventually("the chart's objects to be accepted", func(ctx context.Context) error {
		return release.Apply(ctx, w.Client, "Service", "Issuer", "Certificate")
	})
	w.runCertManager(binary)

	service := w.namespace + "/fairlead-webhook:443"
	o := w.operator(func(options *operator.Options) {
		options.LeaderElectionNamespace = w.namespace
		options.Webhook = operator.WebhookOptions{
			BindAddress: "127.0.0.1:0", Service: service,
			CertificateSource: certs.CertManager, CertificateSecret: "fairlead-webhook-certificate",
		}
	})
	if _, err := cluster.Localkube("serve", "--dir", w.cluster.Dir, "--service", service, "--to", w.serves(o, "webhooks")); err != nil {
		t.Fatal(err)
	}
	w.eventually("the operator to be ready", o.ready)
	w.eventually("both versions to be listed", w.listed)
	w.eventually("all to be stored in the new version", w.migrated)
	first := w.issued()
	if !bytes.Equal(w.config().CABundle, first) {
		t.Error("the API server trusts somebody else")
	}

	asked := askFor(t, w.Client, client.ObjectKey{Namespace: w.namespace, Name: "shop"})
	w.renew()
	w.eventually("the certificate to be renewed", func(context.Context) error {
		if bytes.Equal(w.issued(), first) {
			return errors.New("it is the same")
		}
		return nil
	})
	w.eventually("the new one to be served", o.says("serving another webhook certificate"))
	if bundle := w.config().CABundle; !bytes.Contains(bundle, first) || !bytes.Contains(bundle, w.issued()) {
		t.Error("the API server does not trust both, the old one and the new one")
	}
	w.eventually("it to be called again", w.listed)
	asked.all(t)
	asked.end()
	w.unchanged()
}

// certManager is the program. Building it takes minutes for the first time, which only the full tests may.
func certManager(t *testing.T) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	if !faults.Full() {
		t.Skip("only FAIRLEAD_TESTS=full runs cert-manager, which takes minutes to build")
	}
	path := filepath.Join(root, "bin", "cert-manager")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", path, ".")
	build.Dir = filepath.Join(root, "test", "certmanager")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build cert-manager: %v\n%s", err, output)
	}
	return path
}

// installCertManager brings in the CRDs that come with it.
func (w *world) installCertManager() {
	w.t.Helper()
	root, err := cluster.Root()
	if err != nil {
		w.t.Fatal(err)
	}
	where := exec.CommandContext(w.t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	where.Dir = filepath.Join(root, "test", "certmanager")
	dir, err := where.Output()
	if err != nil {
		w.t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("cert-manager has no CRDs: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		objects, err := chart.Decode(string(text))
		if err != nil {
			w.t.Fatalf("%s: %v", file, err)
		}
		for _, object := range objects {
			if err := w.Create(w.t.Context(), object); err != nil {
				w.t.Fatalf("%s: %v", file, err)
			}
		}
	}
}

func (w *world) runCertManager(binary string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	output := &harness.Log{}
	process := exec.CommandContext(ctx, binary, "--kubeconfig", w.cluster.Kubeconfig())
	process.Stdout, process.Stderr = output, output
	if err := process.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		cancel()
		_ = process.Wait()
		if w.t.Failed() {
			harness.KeepLog(w.t, "cert-manager", output.Since(0))
		}
	})
}

// issued is the certificate, which is its own authority.
func (w *world) issued() []byte {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "fairlead-webhook-certificate"}, secret); err != nil {
		w.t.Fatal(err)
	}
	return secret.Data["ca.crt"]
}

// renew asks for another certificate before its time, as cmctl does.
func (w *world) renew() {
	w.t.Helper()
	w.eventually("a renewal to be asked for", func(ctx context.Context) error {
		certificate := &unstructured.Unstructured{}
		certificate.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"})
		if err := w.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "fairlead-webhook"}, certificate); err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(certificate.Object, "status", "conditions")
		if err != nil {
			return err
		}
		conditions = append(conditions, map[string]any{
			"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "renewed by hand",
			"lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z"),
		})
		if err := unstructured.SetNestedSlice(certificate.Object, conditions, "status", "conditions"); err != nil {
			return fmt.Errorf("set the condition: %w", err)
		}
		return w.Status().Update(ctx, certificate)
	})
}
