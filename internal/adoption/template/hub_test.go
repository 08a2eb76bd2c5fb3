package template

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// syncedCache is a cache of metadata that has received all that the API server has.
type syncedCache struct {
	cache.Cache
	reader    client.Reader
	unsynced  bool
	informers int
}

func (c *syncedCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, object, options...)
}

func (c *syncedCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.reader.List(ctx, list, options...)
}

type informer struct {
	cache.Informer
	synced bool
}

func (i informer) HasSynced() bool { return i.synced }

func (c *syncedCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	c.informers++
	return informer{synced: !c.unsynced}, nil
}

// hub is an API server, and the controller of templates on it.
type hub struct {
	*adoptiontest.API
	reconciler *Reconciler
	cache      *syncedCache
	enqueued   []client.ObjectKey
	watched    []string
	clock      *clocktesting.FakePassiveClock
	events     *events.FakeRecorder
}

const cart = "Deployment apps/v1\nspec: {replicas: 3, template: {spec: {containers: [{name: cart, envFrom: [{configMapRef: {name: it}}]}]}}}"

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	configMaps  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	cartKey     = model.TemplateKey{Kind: deployments, ObjectKey: client.ObjectKey{Namespace: "shop", Name: "it"}}
	binding     = cartKey.Binding()
	// dependency is the binding of the ConfigMap that cart requires.
	dependency = client.ObjectKey{Namespace: "shop", Name: "it-configmap"}
	deleted    = &metav1.Time{Time: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
)

// newHub has a Deployment, the ConfigMap that it requires, a policy that takes the Deployment with its dependencies, and two
// clusters, of which one is leaving.
func newHub(t *testing.T) *hub {
	t.Helper()
	leaving := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "leaving", Finalizers: []string{model.FinalizerCluster}, DeletionTimestamp: deleted}}
	h := &hub{API: adoptiontest.NewAPI(t, func(b *fake.ClientBuilder) {
		for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
			b.WithIndex(kind, model.IndexRequiredBy, model.RequiredByIndexValues).WithIndex(kind, model.IndexPolicy, model.PolicyIndexValues).
				WithIndex(kind, model.IndexWaiting, model.WaitingIndexValues).WithIndex(kind, model.IndexTemplate, model.TemplateIndexValues)
		}
		b.WithIndex(&workv1alpha1.Work{}, model.IndexBinding, model.BindingIndexValues)
	}, adoptiontest.Object(t, cart), adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}"), leaving,
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}},
		&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: policyv1alpha1.PropagationSpec{
			PropagateDeps: true, ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
		}})}
	h.restart()
	return h
}

// restart forgets what the controller has in memory.
func (h *hub) restart() {
	h.events = events.NewFakeRecorder(10)
	h.cache, h.clock = &syncedCache{reader: h}, clocktesting.NewFakePassiveClock(time.Now())
	h.reconciler = &Reconciler{
		client: h, metadata: h.cache, templates: h, enqueueBinding: func(key client.ObjectKey) { h.enqueued = append(h.enqueued, key) },
		Kinds: newWatchedKinds(installed(deployments, configMaps), h, h.clock), recorder: h.events,
	}
	h.reconciler.Kinds.watch = func(kind schema.GroupVersionKind) {
		h.watched = append(h.watched, kind.Kind)
		h.reconciler.Kinds.recordStarted(kind)
	}
}

// installed are the kinds that a hub has.
func installed(kinds ...schema.GroupVersionKind) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	return mapper
}

// fail fails one request: "get Deployment it", or "list Deployment".
func (h *hub) fail(request string, err error) {
	h.On = func(verb string, object client.Object) error {
		if adoptiontest.Describe(verb, object) == request {
			return err
		}
		return nil
	}
	h.OnList = func(kind, _ string) error {
		if "list "+kind == request {
			return err
		}
		return nil
	}
}

// reconcile reconciles the Deployment, and returns what was written.
func (h *hub) reconcile(t *testing.T) []string {
	t.Helper()
	h.Writes = nil
	if _, err := h.reconciler.Reconcile(t.Context(), cartKey); err != nil {
		t.Fatal(err)
	}
	return h.Writes
}

func (h *hub) read(t *testing.T, key client.ObjectKey) *model.Binding {
	t.Helper()
	b, err := model.GetBinding(t.Context(), h, key)
	if err != nil || b == nil {
		t.Fatalf("binding %s: %v", key, err)
	}
	return b
}

// put creates an object, or replaces the one of that name.
func (h *hub) put(t *testing.T, object client.Object) {
	t.Helper()
	have := object.DeepCopyObject().(client.Object)
	write := func() error { return h.Create(t.Context(), object) }
	if h.Exists(t, have) {
		object.SetResourceVersion(have.GetResourceVersion())
		write = func() error { return h.Update(t.Context(), object) }
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
}

func (h *hub) remove(t *testing.T, object client.Object) {
	t.Helper()
	if err := h.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (h *hub) change(t *testing.T, key client.ObjectKey, change func(*model.Binding)) {
	t.Helper()
	b := h.read(t, key)
	change(b)
	h.put(t, b.Object)
}

func (h *hub) policy(t *testing.T) *policyv1alpha1.PropagationPolicy {
	t.Helper()
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
	if !h.Exists(t, p) {
		t.Fatal("the policy is gone")
	}
	return p
}

func (h *hub) setPolicy(t *testing.T, change func(*policyv1alpha1.PropagationPolicy)) {
	t.Helper()
	p := h.policy(t)
	change(p)
	h.put(t, p)
}

// state is what bindings are deleted, for what, and who takes or requires them.
func (h *hub) state(t *testing.T) string {
	t.Helper()
	bindings, err := model.ListBindings(t.Context(), h, "")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, b := range bindings {
		all = append(all, fmt.Sprintf("%s deleted=%t restore=%s%s released=%s claim=%s requiredBy=%d", b.GetName(), b.GetDeletionTimestamp() != nil,
			b.GetAnnotations()[model.AnnotationRestore], b.GetAnnotations()[model.AnnotationRestoreClusters], b.GetAnnotations()[model.AnnotationReleased], model.ClaimOf(b), len(b.Spec.RequiredBy)))
	}
	return strings.Join(all, "\n")
}
