package certs_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/cluster"
	"github.com/fairlead/fairlead/test/launch"
)

const request = v1alpha2.UUID("5f1d1e6e-7b1c-4c70-9a0a-0d9b3ad52d6f")

// world is a cluster in which Materializes are stored as v1alpha1.
type world struct {
	client.Client
	t         testing.TB
	cluster   *cluster.Cluster
	namespace string
	seeded    map[string]*v1alpha1.Materialize
}

func newWorld(t testing.TB, names ...string) *world {
	t.Helper()
	c := cluster.Start(t, cluster.Options{Profile: "hub"})
	w := &world{t: t, cluster: c, namespace: c.Namespace(t), seeded: map[string]*v1alpha1.Materialize{}}
	var err error
	if w.Client, err = client.New(c.Config(), client.Options{Scheme: newScheme(t)}); err != nil {
		t.Fatal(err)
	}
	old, err := crds.Named(crdName)
	if err != nil {
		t.Fatal(err)
	}
	crd := old[0]
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name != v1alpha1.GroupVersion.Version
	})
	crd.Spec.Versions[0].Storage = true
	if err := w.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		w.seed(name)
	}
	return w
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v1alpha2.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// seed makes one that is not being rolled out.
func (w *world) seed(name string) {
	w.t.Helper()
	m := &v1alpha1.Materialize{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	m.Spec.EnvironmentdImageRef, m.Spec.BackendSecretName = "materialize/environmentd:v1", "backend"
	m.Spec.EnvironmentdIamRoleArn = "arn:aws:iam::1:role/" + name
	m.Spec.RequestRollout = request
	w.eventually("a Materialize to be accepted", func(ctx context.Context) error { return w.Create(ctx, m) })
	m.Status.LastCompletedRolloutRequest = request
	if err := w.Status().Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
	w.seeded[name] = m
}

func (w *world) eventually(what string, try func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 40*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("waited in vain for %s: %v", what, err)
		}
	}
}

// running is an operator.
type running struct {
	t      testing.TB
	log    *launch.Log
	probes string
	stop   func()
}

func (w *world) operator(change func(*operator.Options)) *running {
	w.t.Helper()
	options := operator.DefaultOptions()
	options.Passages = []string{v1alpha2.PassageRollout}
	options.HealthProbeBindAddress, options.MetricsBindAddress = freeAddress(w.t), "0"
	if change != nil {
		change(&options)
	}
	if err := options.Validate(); err != nil {
		w.t.Fatal(err)
	}
	r := &running{t: w.t, log: &launch.Log{}, probes: options.HealthProbeBindAddress}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, w.cluster.Config(), options, operator.NewLogger(r.log, "text", "info"))
	}()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the operator ended: %v", err)
		}
		ended <- nil
	}
	w.t.Cleanup(func() {
		r.stop()
		if w.t.Failed() {
			w.t.Logf("log of an operator:\n%s", r.log.Since(0))
		}
	})
	return r
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (r *running) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.probes+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it is not ready: %d", response.StatusCode)
	}
	return nil
}

func (r *running) says(text string) func(context.Context) error {
	return func(context.Context) error {
		if !strings.Contains(r.log.Since(0), text) {
			return fmt.Errorf("its log does not say %s", text)
		}
		return nil
	}
}

func (w *world) crd(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, w.Get(ctx, client.ObjectKey{Name: crdName}, crd)
}

// config by which the API server calls the webhook.
func (w *world) config() apiextensionsv1.WebhookClientConfig {
	w.t.Helper()
	crd, err := w.crd(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if crd.Spec.Conversion.Webhook == nil {
		return apiextensionsv1.WebhookClientConfig{}
	}
	return *crd.Spec.Conversion.Webhook.ClientConfig
}

func (w *world) listed(ctx context.Context) error {
	var old v1alpha1.MaterializeList
	var current v1alpha2.MaterializeList
	if err := errors.Join(w.List(ctx, &old), w.List(ctx, &current)); err != nil {
		return err
	}
	if len(old.Items) != len(w.seeded) || len(current.Items) != len(w.seeded) {
		return fmt.Errorf("%d and %d are listed", len(old.Items), len(current.Items))
	}
	return nil
}

func (w *world) migrated(ctx context.Context) error {
	crd, err := w.crd(ctx)
	if err != nil {
		return err
	}
	if stored := crd.Status.StoredVersions; !slices.Equal(stored, []string{v1alpha2.GroupVersion.Version}) {
		return fmt.Errorf("the stored versions are %v", stored)
	}
	return nil
}

// unchanged tells that nothing has happened to what users wrote.
func (w *world) unchanged() {
	w.t.Helper()
	for name, before := range w.seeded {
		var m v1alpha2.Materialize
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(before), &m); err != nil {
			w.t.Error(err)
			continue
		}
		if m.Generation != before.Generation || m.UID != before.UID {
			w.t.Errorf("%s: generation %d, was %d", name, m.Generation, before.Generation)
		}
		want := before.Spec.SharedSpec
		want.ServiceAccountAnnotations = map[string]string{v1alpha2.AnnotationRoleArn: before.Spec.EnvironmentdIamRoleArn}
		if diff := cmp.Diff(want, m.Spec.SharedSpec); diff != "" {
			w.t.Errorf("%s: %s", name, diff)
		}
		if hash := m.Status.LastCompletedRolloutHash; hash == "" || hash != m.Status.RequestedRolloutHash {
			w.t.Errorf("%s: completed %q, requested %q", name, hash, m.Status.RequestedRolloutHash)
		}
	}
}

func TestUpgrade(t *testing.T) {
	w := newWorld(t, "cart", "shop")
	first := w.operator(nil)
	w.eventually("the operator to be ready", first.ready)
	w.eventually("both versions to be listed", w.listed)
	w.eventually("all to be stored in the new version", w.migrated)
	w.unchanged()
	before := w.config()

	second := w.operator(nil)
	w.eventually("another operator to be ready", second.ready)
	if diff := cmp.Diff(before, w.config()); diff != "" {
		t.Errorf("one that does not lead took the conversion: %s", diff)
	}
	first.stop()
	w.eventually("the other to be called instead", func(context.Context) error {
		if after := w.config(); *after.URL == *before.URL {
			return errors.New("it is not")
		}
		return nil
	})
	w.eventually("both versions to be listed again", w.listed)
	w.eventually("the other to lead", second.says("leading"))
	second.stop()
	if diff := cmp.Diff(string(before.CABundle), string(w.config().CABundle)); diff != "" {
		t.Error("a change of leaders made another authority")
	}
	left, err := w.crd(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	third := w.operator(nil)
	w.eventually("a third operator to be ready", third.ready)
	w.eventually("both versions to be listed by it", w.listed)
	w.eventually("it to lead", third.says("leading"))
	if found, err := w.crd(t.Context()); err != nil || found.ResourceVersion != left.ResourceVersion {
		t.Errorf("a restart wrote the CRD: %v", err)
	}
	w.unchanged()
}

// A Service calls only who is ready, and what is stored as v1alpha1 can be read only by calling.
func TestReadyBeforeItIsCalled(t *testing.T) {
	w := newWorld(t, "shop")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "fairlead-webhook", Namespace: w.namespace}}
	service.Spec.Ports = []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(9443)}}
	service.Spec.Selector = map[string]string{"app": "fairlead"}
	if err := w.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	address, name := freeAddress(t), w.namespace+"/fairlead-webhook:443"
	o := w.operator(func(options *operator.Options) {
		options.Webhook.BindAddress, options.Webhook.Service = address, name
		options.LeaderElectionNamespace = w.namespace
	})
	w.eventually("the operator to be ready", o.ready)
	if err := w.listed(t.Context()); err == nil {
		t.Error("objects were converted although nobody could be called")
	}
	if strings.Contains(o.log.Since(0), "leading") {
		t.Error("it leads without having seen the objects")
	}
	if _, err := cluster.Localkube("serve", "--dir", w.cluster.Dir, "--service", name, "--to", address); err != nil {
		t.Fatal(err)
	}
	w.eventually("both versions to be listed", w.listed)
	w.eventually("all to be stored in the new version", w.migrated)
	w.unchanged()

	byHand := w.operator(nil)
	w.eventually("one that was started by hand to lead", byHand.says("leading"))
	if w.config().Service == nil {
		t.Error("one that was started by hand took the conversion from a Service")
	}
}

func TestWithoutThePassageItsCRDIsLeftAlone(t *testing.T) {
	w := newWorld(t, "shop")
	before, err := w.crd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := w.operator(func(options *operator.Options) {
		options.Passages = []string{"revision"}
		options.Charts.Dir = t.TempDir()
	})
	w.eventually("the operator to be ready", o.ready)
	after, err := w.crd(t.Context())
	if err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the CRD was written: %v", err)
	}
	if strings.Contains(o.log.Since(0), "webhooks") {
		t.Error("it serves webhooks that nobody needs")
	}
}
