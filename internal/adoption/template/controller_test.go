package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
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
	h.cache, h.clock = &syncedCache{reader: h}, clocktesting.NewFakePassiveClock(time.Now())
	h.reconciler = &Reconciler{
		client: h, metadata: h.cache, templates: h, enqueueBinding: func(key client.ObjectKey) { h.enqueued = append(h.enqueued, key) },
		Kinds: newWatchedKinds(installed(deployments, configMaps), h, h.clock),
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

// A template that is taken gets its binding, and its dependencies theirs. Without a change nothing is written, and the controller
// of bindings is told, because the content of the template may have changed.
func TestReconcileWritesOnce(t *testing.T) {
	h := newHub(t)
	if diff := cmp.Diff([]string{"create ResourceBinding it-deployment", "create ResourceBinding it-configmap"}, h.reconcile(t)); diff != "" || len(h.enqueued) > 0 {
		t.Errorf("enqueued %v, written (-want +got)\n%s", h.enqueued, diff)
	}
	clusters := []workv1alpha2.TargetCluster{{Name: "west"}}
	if got := model.Targets(h.read(t, binding)); !cmp.Equal(got, clusters) {
		t.Errorf("the Deployment goes to %v", got)
	}
	if got := model.Targets(h.read(t, dependency)); !cmp.Equal(got, clusters) {
		t.Errorf("the ConfigMap goes to %v", got)
	}
	h.restart()
	if written := h.reconcile(t); len(written) > 0 || !slices.Equal(h.enqueued, []client.ObjectKey{binding}) {
		t.Errorf("enqueued %v, written %v", h.enqueued, written)
	}
}

// A divided placement divides the replicas of the template. A template that is deleted meanwhile is left to the next event.
func TestReconcileDivided(t *testing.T) {
	h := newHub(t)
	h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.PropagateDeps = false
		p.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaScheduling{ReplicaSchedulingType: policyv1alpha1.ReplicasDivided}
	})
	h.On = func(verb string, object client.Object) error {
		if _, whole := object.(*unstructured.Unstructured); whole && verb == "get" {
			return apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "it")
		}
		return nil
	}
	if written := h.reconcile(t); len(written) > 0 {
		t.Errorf("written for a template that is gone: %v", written)
	}
	h.On = nil
	h.reconcile(t)
	if got := h.read(t, binding).Spec; got.Replicas != 3 || !cmp.Equal(got.Clusters, []workv1alpha2.TargetCluster{{Name: "west", Replicas: 3}}) {
		t.Errorf("%d replicas, in %v", got.Replicas, got.Clusters)
	}
}

// Killed at any write, a release ends in the same place when the template is reconciled again.
func TestReleaseInterruptedAtEveryWrite(t *testing.T) {
	const none = "claim=/ "
	for name, c := range map[string]struct {
		release func(t *testing.T, h *hub)
		want    string
		writes  int
	}{
		"the template is deleted": {
			func(t *testing.T, h *hub) { h.remove(t, adoptiontest.Object(t, cart)) },
			"it-configmap deleted=true restore= released=true " + none + "requiredBy=1\nit-deployment deleted=true restore= released= claim=shop/p requiredBy=0", 3,
		},
		"the policy is aborted": {
			func(t *testing.T, h *hub) {
				h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
					p.Annotations = map[string]string{model.AnnotationAborted: "true"}
				})
			},
			"it-configmap deleted=true restore=true released= " + none + "requiredBy=1\nit-deployment deleted=true restore=true released= claim=shop/p requiredBy=0", 4,
		},
		"the policy is deleted": {
			func(t *testing.T, h *hub) { h.remove(t, h.policy(t)) },
			"it-configmap deleted=true restore= released=true " + none + "requiredBy=1\nit-deployment deleted=false restore= released= " + none + "requiredBy=0", 3,
		},
		"dependencies are no longer propagated": {
			func(t *testing.T, h *hub) {
				h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = false })
			},
			"it-configmap deleted=true restore= released=true " + none + "requiredBy=1\nit-deployment deleted=false restore= released= claim=shop/p requiredBy=0", 3,
		},
		"the policy is aborted, and another template requires the dependency": {
			func(t *testing.T, h *hub) {
				h.change(t, dependency, func(b *model.Binding) {
					b.Spec.RequiredBy = append(b.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "shop", Name: "pay-deployment"})
				})
				h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
					p.Annotations = map[string]string{model.AnnotationAborted: "true"}
				})
			},
			"it-configmap deleted=false restore=west released= " + none + "requiredBy=1\nit-deployment deleted=true restore=true released= claim=shop/p requiredBy=0", 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for kill := range c.writes + 1 {
				h := newHub(t)
				h.reconcile(t)
				c.release(t, h)
				done := 0
				h.On = func(verb string, _ client.Object) error {
					if verb == "get" {
						return nil
					}
					if done == kill {
						return errors.New("killed")
					}
					done++
					return nil
				}
				_, err := h.reconciler.Reconcile(t.Context(), cartKey)
				if (err == nil) != (kill == c.writes) || done != kill {
					t.Errorf("killed at write %d, %d done: %v", kill, done, err)
				}
				h.On = nil
				h.restart()
				h.reconcile(t)
				if diff := cmp.Diff(c.want, h.state(t)); diff != "" {
					t.Errorf("killed at write %d (-want +got)\n%s", kill, diff)
				}
				if written := h.reconcile(t); len(written) > 0 {
					t.Errorf("killed at write %d, written once more: %v", kill, written)
				}
			}
		})
	}
}

// As long as the hub does not say whether a template exists, or which policies there are, nothing is released.
func TestReconcileUnknown(t *testing.T) {
	refused := apierrors.NewInternalError(errors.New("no leader"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for name, c := range map[string]struct {
		request string
		err     error
		failed  bool
	}{
		"the binding cannot be read":                 {"get ResourceBinding it-deployment", refused, true},
		"the kind may not be read":                   {"list Deployment", forbidden, false},
		"the kind cannot be read":                    {"list Deployment", refused, false},
		"the template cannot be read":                {"get Deployment it", refused, true},
		"policies cannot be listed":                  {"list PropagationPolicy", refused, true},
		"policies of the cluster cannot be listed":   {"list ClusterPropagationPolicy", refused, true},
		"clusters cannot be listed":                  {"list Cluster", refused, true},
		"bindings cannot be listed":                  {"list ResourceBinding", refused, true},
		"a dependency cannot be read":                {"get ConfigMap it", refused, true},
		"the kind of the dependency cannot be read":  {"list ConfigMap", refused, false},
		"the kind of the dependency may not be read": {"list ConfigMap", forbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.reconcile(t)
			before := h.state(t)
			h.restart()
			h.Writes = nil
			h.fail(c.request, c.err)
			result, err := h.reconciler.Reconcile(t.Context(), cartKey)
			if (err != nil) != c.failed {
				t.Errorf("got %v", err)
			}
			if !c.failed && result.RequeueAfter != policy.KindRetryInterval {
				t.Errorf("tried again after %s", result.RequeueAfter)
			}
			if len(h.Writes) > 0 {
				t.Errorf("written: %v", h.Writes)
			}
			h.On, h.OnList = nil, nil
			if diff := cmp.Diff(before, h.state(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A dependency goes along if the hub has it to give.
func TestAddDependency(t *testing.T) {
	const template, required = "ResourceBinding it-deployment", "ResourceBinding it-configmap"
	for name, c := range map[string]struct {
		change func(t *testing.T, h *hub)
		want   []string
	}{
		"on the hub":     {func(*testing.T, *hub) {}, []string{"create " + template, "create " + required}},
		"not on the hub": {func(t *testing.T, h *hub) { h.remove(t, adoptiontest.Object(t, "ConfigMap v1")) }, []string{"create " + template}},
		"being deleted on the hub": {func(t *testing.T, h *hub) {
			o := adoptiontest.Object(t, "ConfigMap v1")
			o.SetFinalizers([]string{"f"})
			h.put(t, o)
			h.remove(t, o)
		}, []string{"create " + template}},
		"local to each cluster": {func(t *testing.T, h *hub) {
			h.put(t, adoptiontest.Object(t, strings.Replace(cart, "name: it", "name: kube-root-ca.crt", 1)))
			o := adoptiontest.Object(t, "ConfigMap v1")
			o.SetName("kube-root-ca.crt")
			h.put(t, o)
		}, []string{"create " + template}},
		"bound, and that binding is being deleted": {func(t *testing.T, h *hub) {
			h.reconcile(t)
			h.remove(t, h.read(t, dependency).Object)
			h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
			})
		}, []string{"update " + template}},
		"bound by a policy": {func(t *testing.T, h *hub) {
			h.reconcile(t)
			h.change(t, dependency, func(b *model.Binding) {
				model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "other"})
				b.Spec.RequiredBy = nil
			})
		}, []string{"update " + required}},
		"bound, and the conflict resolution changes": {func(t *testing.T, h *hub) {
			h.reconcile(t)
			h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
			})
		}, []string{"update " + template, "update " + required}},
		"bound, and the policy is suspended": {func(t *testing.T, h *hub) {
			h.reconcile(t)
			h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
			})
		}, []string{"update " + template, "update " + required}},
		"of a refused policy": {func(t *testing.T, h *hub) {
			h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Failover = &policyv1alpha1.FailoverBehavior{} })
		}, []string{"create " + template}},
		"bound, and the policy is refused": {func(t *testing.T, h *hub) {
			h.reconcile(t)
			h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.Failover, p.Spec.PropagateDeps = &policyv1alpha1.FailoverBehavior{}, false
			})
		}, []string{"update " + template, "update " + required}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			c.change(t, h)
			if diff := cmp.Diff(c.want, h.reconcile(t)); diff != "" {
				t.Errorf("written (-want +got)\n%s", diff)
			}
			result, err := h.reconciler.Reconcile(t.Context(), cartKey)
			if waits := strings.HasSuffix(name, "is being deleted"); (result.RequeueAfter > 0) != waits || err != nil {
				t.Errorf("tried again after %s, %v", result.RequeueAfter, err)
			}
			if len(h.Writes) > len(c.want) {
				t.Errorf("written once more: %v", h.Writes)
			}
		})
	}
}

// The policy of a namespace that is being deleted may go before the templates: they are not released, and another policy does not
// take them.
func TestPolicyDeletedWithItsNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		deleted, another bool
		want             string
	}{
		"the policy alone":             {false, false, "deleted=false claim=/"},
		"with its namespace":           {true, false, "deleted=true claim=shop/p"},
		"the policy, and another one":  {false, true, "deleted=false claim=/q"},
		"the namespace, another stays": {true, true, "deleted=true claim=shop/p"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.reconcile(t)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Finalizers: []string{"kubernetes"}}}
			h.put(t, namespace)
			if c.deleted {
				h.remove(t, namespace)
			}
			if c.another {
				h.put(t, &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: h.policy(t).Spec})
			}
			h.remove(t, h.policy(t))
			h.reconcile(t)
			b := h.read(t, binding)
			if got := fmt.Sprintf("deleted=%t claim=%s", b.GetDeletionTimestamp() != nil, model.ClaimOf(b)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A binding cannot be created in a namespace that is being deleted, and a retry would fail as well.
func TestBindingRefusedByADeletedNamespace(t *testing.T) {
	h := newHub(t)
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "work.karmada.io", Resource: "resourcebindings"}, "it-deployment", errors.New("namespace shop is being terminated"))
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, request := range []string{"create ResourceBinding it-deployment", "create ResourceBinding it-configmap"} {
		h.fail(request, refused)
		if _, err := h.reconciler.Reconcile(t.Context(), cartKey); err != nil {
			t.Errorf("%s: %v", request, err)
		}
	}
}
