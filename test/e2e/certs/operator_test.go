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

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
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
	if err := wait.Try(w.t.Context(), try); err != nil {
		w.t.Fatalf("waited in vain for %s: %v", what, err)
	}
}

// running is an operator.
type running struct {
	log  *harness.Log
	stop func()
}

func (w *world) operator(change func(*operator.Options)) *running {
	w.t.Helper()
	options := operator.DefaultOptions()
	options.Passages = []string{v1alpha2.PassageRollout}
	options.LeaderElectionLeaseDuration = wait.Deadline() / 10
	options.MetricsBindAddress = "0"
	if change != nil {
		change(&options)
	}
	if err := options.Validate(); err != nil {
		w.t.Fatal(err)
	}
	r := &running{log: &harness.Log{}}
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
			harness.KeepLog(w.t, "operator", r.log.Since(0))
		}
	})
	return r
}

// address is where one of the operator's servers listens, as its log has it.
func (r *running) address(server string) (string, error) {
	for line := range strings.Lines(r.log.Since(0)) {
		if !strings.Contains(line, `msg="starting server"`) || !strings.Contains(line, server) {
			continue
		}
		if _, address, found := strings.Cut(strings.TrimSpace(line), "addr="); found {
			return address, nil
		}
	}
	return "", fmt.Errorf("its log does not say where it serves %s", server)
}

// serves waits until one of the operator's servers listens.
func (w *world) serves(r *running, server string) (address string) {
	w.t.Helper()
	w.eventually("the operator to serve "+server, func(context.Context) (err error) {
		address, err = r.address(server)
		return err
	})
	return address
}

func (r *running) ready(ctx context.Context) error {
	probes, err := r.address("health probes")
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+probes+"/readyz", nil)
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

// listOnce lists them without trying again, as the clients of Kubernetes do for a while, and tells the HTTP status.
func (w *world) listOnce() int {
	w.t.Helper()
	config := w.cluster.Config()
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := http.Get(config.Host + "/apis/" + v1alpha2.GroupVersion.String() + "/materializes")
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
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

// TestUpgrade tells how a cluster that stores v1alpha1 comes to store v1alpha2, by operators and by commands.
func TestUpgrade(t *testing.T) {
	w := newWorld(t, "cart", "shop")
	w.withoutThePassage()
	w.installWithoutAWebhook()
	first := w.operator(nil)
	w.eventually("the operator to be ready", first.ready)
	w.eventually("both versions to be listed", w.listed)
	w.eventually("all to be stored in the new version", w.migrated)
	w.unchanged()
	w.migrateByCommand()
	w.changeLeaders(first)
	w.unchanged()
}

// withoutThePassage: an operator that does not roll out leaves the CRD alone.
func (w *world) withoutThePassage() {
	w.t.Helper()
	before, err := w.crd(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	o := w.operator(func(options *operator.Options) {
		options.Passages = []string{"revision"}
		options.Charts.Dir = w.t.TempDir()
	})
	w.eventually("the operator to be ready", o.ready)
	after, err := w.crd(w.t.Context())
	if err != nil || after.ResourceVersion != before.ResourceVersion {
		w.t.Errorf("the CRD was written: %v", err)
	}
	if strings.Contains(o.log.Since(0), "webhooks") {
		w.t.Error("it serves webhooks that nobody needs")
	}
	o.stop()
}

// installWithoutAWebhook: the commands do not install what could not be converted.
func (w *world) installWithoutAWebhook() {
	w.t.Helper()
	refused := harness.RunCommand(w.t, w.cluster, "crds", "install", "--timeout", wait.Deadline().String())
	if refused.Code != 1 || !strings.Contains(refused.Stdout, "NeedsWebhook") || !strings.Contains(refused.Stderr, "start the operator") {
		w.t.Errorf("an install that nobody could convert for: %+v", refused)
	}
	if none := harness.RunCommand(w.t, w.cluster, "crds", "migrate"); none.Code != 0 || strings.Contains(none.Stdout, "Left behind") {
		w.t.Errorf("a migration with nothing to do: %+v", none)
	}
}

// migrateByCommand does again what the operator has done.
func (w *world) migrateByCommand() {
	w.t.Helper()
	crd, err := w.crd(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	forgetful := client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v1alpha1","v1alpha2"]}}`))
	if err := w.Status().Patch(w.t.Context(), crd, forgetful); err != nil {
		w.t.Fatal(err)
	}
	got := harness.RunCommand(w.t, w.cluster, "crds", "migrate", crdName)
	want := `CRD                              FROM       TO         REWRITTEN   FAILED   OUTCOME
materializes.materialize.cloud   v1alpha1   v1alpha2   2           0        Migrated
`
	if got.Code != 0 || got.Stdout != want || !strings.Contains(got.Stderr, "2 of 2 objects from v1alpha1 to v1alpha2") {
		w.t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	w.eventually("the command to have migrated all", w.migrated)
	if installed := harness.RunCommand(w.t, w.cluster, "crds", "install", "--timeout", wait.Deadline().String()); installed.Code != 0 || !strings.Contains(installed.Stdout, "Unchanged") {
		w.t.Errorf("an install where the operator sees to the webhook: %+v", installed)
	}
}

// changeLeaders: the conversion follows the operator that leads, with the authority that callers trust, and a restart
// writes nothing.
func (w *world) changeLeaders(first *running) {
	w.t.Helper()
	before := w.config()
	second := w.operator(nil)
	w.eventually("another operator to be ready", second.ready)
	if diff := cmp.Diff(before, w.config()); diff != "" {
		w.t.Errorf("one that does not lead took the conversion: %s", diff)
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
	address := w.serves(second, "webhooks")
	second.stop()
	if diff := cmp.Diff(string(before.CABundle), string(w.config().CABundle)); diff != "" {
		w.t.Error("a change of leaders made another authority")
	}
	left, err := w.crd(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}

	third := w.operator(nil)
	w.eventually("a third operator to be ready", third.ready)
	w.eventually("both versions to be listed by it", w.listed)
	w.eventually("it to lead", third.says("leading"))
	found, err := w.crd(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if found.ResourceVersion == left.ResourceVersion {
		return
	}
	// It has to write the CRD if another program has taken the port meanwhile, and only then.
	if w.serves(third, "webhooks") == address || isFree(address) {
		w.t.Error("a restart wrote the CRD")
	}
}

func isFree(address string) bool {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// A Service calls only who is ready, and what is stored as v1alpha1 can be read only by calling.
func TestReadyBeforeConversionIsCalled(t *testing.T) {
	w := newWorld(t, "shop")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "fairlead-webhook", Namespace: w.namespace}}
	service.Spec.Ports = []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(9443)}}
	service.Spec.Selector = map[string]string{"app": "fairlead"}
	if err := w.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	name := w.namespace + "/fairlead-webhook:443"
	o := w.operator(func(options *operator.Options) {
		options.Webhook.Service = name
		options.LeaderElectionNamespace = w.namespace
	})
	w.eventually("the operator to be ready", o.ready)
	if code := w.listOnce(); code == http.StatusOK {
		t.Error("objects were converted although nobody could be called")
	}
	if strings.Contains(o.log.Since(0), "leading") {
		t.Error("it leads without having seen the objects")
	}
	if _, err := cluster.Localkube("serve", "--dir", w.cluster.Dir, "--service", name, "--to", w.serves(o, "webhooks")); err != nil {
		t.Fatal(err)
	}
	w.eventually("both versions to be listed", w.listed)
	w.eventually("all to be stored in the new version", w.migrated)
	w.unchanged()

	o.stop()
	byHand := w.operator(nil)
	w.eventually("one that was started by hand to lead", byHand.says("leading"))
	if w.config().Service == nil {
		t.Error("one that was started by hand took the conversion from a Service")
	}
}
