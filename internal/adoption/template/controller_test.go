package template

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

// syncedCache is a cache of metadata that has received all that the API server has.
type syncedCache struct {
	cache.Cache
	reader   client.Reader
	unsynced bool
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
	return informer{synced: !c.unsynced}, nil
}

// hub is an API server, and the controller of templates on it.
type hub struct {
	*adoptiontest.APIServer
	*Reconciler
	cache    *syncedCache
	enqueued []client.ObjectKey
	watched  []string
}

const (
	cart    = "Deployment apps/v1\nspec: {replicas: 3, template: {spec: {containers: [{name: cart, envFrom: [{configMapRef: {name: it}}]}]}}}"
	binding = "resourcebindings/shop/it-deployment"
	// dependency is the binding of the ConfigMap that cart requires.
	dependency = "resourcebindings/shop/it-configmap"
)

var cartKey = model.TemplateKey{Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, ObjectKey: client.ObjectKey{Namespace: "shop", Name: "it"}}

// newHub has a Deployment, the ConfigMap that it requires, a policy that takes the Deployment with its dependencies, and two
// clusters, of which one is leaving.
func newHub(t *testing.T) *hub {
	t.Helper()
	leaving := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Name: "leaving", Finalizers: []string{model.FinalizerCluster}, DeletionTimestamp: &metav1.Time{Time: adoptiontest.TokensFrom},
	}}
	s := adoptiontest.NewAPIServer(t, adoptiontest.Object(t, cart), adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}"), leaving,
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}},
		&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: policyv1alpha1.PropagationSpec{
			PropagateDeps: true, ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
		}})
	s.Index = map[string]func(client.Object) []string{model.IndexRequiredBy: model.RequiredByIndexValues, model.IndexPolicy: model.PolicyIndexValues}
	h := &hub{APIServer: s}
	h.restart(t)
	return h
}

// restart forgets what the controller has in memory.
func (h *hub) restart(t *testing.T) {
	t.Helper()
	c := h.Client(t)
	h.cache = &syncedCache{reader: c}
	h.Reconciler = &Reconciler{
		client: c, metadata: h.cache, templates: c, enqueueBinding: func(key client.ObjectKey) { h.enqueued = append(h.enqueued, key) },
		Kinds: &watchedKinds{mapper: c.RESTMapper(), reader: c, watch: func(kind schema.GroupVersionKind) { h.watched = append(h.watched, kind.Kind) }},
	}
}

// reconcile reconciles the Deployment, and returns what was written.
func (h *hub) reconcile(t *testing.T) []string {
	t.Helper()
	h.Requests(true)
	if _, err := h.Reconcile(t.Context(), cartKey); err != nil {
		t.Fatal(err)
	}
	return h.Requests(false)
}

func (h *hub) read(t *testing.T, key string) *model.Binding {
	t.Helper()
	parts := strings.Split(key, "/")
	b, err := model.GetBinding(t.Context(), h.client, client.ObjectKey{Namespace: parts[1], Name: parts[2]})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (h *hub) change(t *testing.T, key string, change func(*model.Binding)) {
	t.Helper()
	b := h.read(t, key)
	change(b)
	h.Put(t, b.Object)
}

func (h *hub) setPolicy(t *testing.T, change func(*policyv1alpha1.PropagationPolicy)) {
	t.Helper()
	p := &policyv1alpha1.PropagationPolicy{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "p"}, p); err != nil {
		t.Fatal(err)
	}
	change(p)
	h.Put(t, p)
}

// state is what bindings are deleted, for what, and who takes or requires them.
func (h *hub) state(t *testing.T) string {
	t.Helper()
	var all []string
	for _, key := range h.Keys() {
		if strings.HasPrefix(key, "resourcebindings/") {
			b := h.read(t, key)
			all = append(all, fmt.Sprintf("%s deleted=%t restore=%s released=%s claim=%s requiredBy=%d", b.GetName(), b.GetDeletionTimestamp() != nil,
				b.GetAnnotations()[model.AnnotationRestore], b.GetAnnotations()[model.AnnotationReleased], model.ClaimOf(b), len(b.Spec.RequiredBy)))
		}
	}
	return strings.Join(all, "\n")
}

// A template that is taken gets its binding, and its dependencies theirs. Without a change nothing is written, and the controller
// of bindings is told, because the content of the template may have changed.
func TestReconcileWritesOnce(t *testing.T) {
	h := newHub(t)
	if diff := cmp.Diff([]string{"POST resourcebindings/shop", "POST resourcebindings/shop"}, h.reconcile(t)); diff != "" || len(h.enqueued) > 0 {
		t.Errorf("enqueued %v, written (-want +got)\n%s", h.enqueued, diff)
	}
	clusters := []workv1alpha2.TargetCluster{{Name: "west"}}
	if got := model.Targets(h.read(t, binding)); !cmp.Equal(got, clusters) {
		t.Errorf("the Deployment goes to %v", got)
	}
	if got := model.Targets(h.read(t, dependency)); !cmp.Equal(got, clusters) {
		t.Errorf("the ConfigMap goes to %v", got)
	}
	h.restart(t)
	if written := h.reconcile(t); len(written) > 0 || !slices.Equal(h.enqueued, []client.ObjectKey{cartKey.Binding()}) {
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
	h.Fail = func(r *http.Request) error {
		if strings.HasSuffix(r.URL.Path, "/deployments/it") && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
			return apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "it")
		}
		return nil
	}
	if written := h.reconcile(t); len(written) > 0 {
		t.Errorf("written for a template that is gone: %v", written)
	}
	h.Fail = nil
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
			func(_ *testing.T, h *hub) { h.Remove("deployments/shop/it") },
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
			func(_ *testing.T, h *hub) { h.Remove("propagationpolicies/shop/p") },
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
			"it-configmap deleted=false restore= released= " + none + "requiredBy=1\nit-deployment deleted=true restore=true released= claim=shop/p requiredBy=0", 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for kill := range c.writes + 1 {
				h := newHub(t)
				h.reconcile(t)
				c.release(t, h)
				done := 0
				h.Fail = func(r *http.Request) error {
					if r.Method == http.MethodGet {
						return nil
					}
					if done == kill {
						return errors.New("killed")
					}
					done++
					return nil
				}
				_, err := h.Reconcile(t.Context(), cartKey)
				if (err == nil) != (kill == c.writes) || done != kill {
					t.Errorf("killed at write %d, %d done: %v", kill, done, err)
				}
				h.Fail = nil
				h.restart(t)
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
	for name, c := range map[string]struct {
		path   string
		err    error
		failed bool
	}{
		"the binding cannot be read":                   {"/resourcebindings/it-deployment", refused, true},
		"the kind may not be read":                     {"/deployments", apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")), false},
		"the kind cannot be read":                      {"/deployments", refused, false},
		"the metadata cannot be read":                  {"/deployments/it", refused, true},
		"policies cannot be listed":                    {"/propagationpolicies", refused, true},
		"policies of the cluster cannot be listed":     {"/clusterpropagationpolicies", refused, true},
		"clusters cannot be listed":                    {"/clusters", refused, true},
		"dependencies cannot be listed":                {"/namespaces/shop/resourcebindings", refused, true},
		"a dependency cannot be read":                  {"/configmaps/it", refused, true},
		"the kind of the dependency cannot be read":    {"/configmaps", refused, false},
		"the kind of the dependency may not be read":   {"/configmaps", apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")), false},
		"the binding of the dependency cannot be read": {"/resourcebindings/it-configmap", refused, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.reconcile(t)
			before := h.state(t)
			h.restart(t)
			h.Fail = func(r *http.Request) error {
				if strings.HasSuffix(r.URL.Path, c.path) {
					return c.err
				}
				return nil
			}
			h.Requests(true)
			result, err := h.Reconcile(t.Context(), cartKey)
			if (err != nil) != c.failed {
				t.Errorf("got %v", err)
			}
			if c.path == "/deployments" && result.RequeueAfter != policy.KindRetryInterval {
				t.Errorf("tried again after %s", result.RequeueAfter)
			}
			if written := h.Requests(false); len(written) > 0 {
				t.Errorf("written: %v", written)
			}
			h.Fail = nil
			if diff := cmp.Diff(before, h.state(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A dependency goes along if the hub has it to give.
func TestAddDependency(t *testing.T) {
	const bound = "POST resourcebindings/shop"
	for name, c := range map[string]struct {
		change func(t *testing.T, h *hub)
		want   []string
	}{
		"on the hub":     {func(*testing.T, *hub) {}, []string{bound, bound}},
		"not on the hub": {func(_ *testing.T, h *hub) { h.Remove("configmaps/shop/it") }, []string{bound}},
		"being deleted on the hub": {func(t *testing.T, h *hub) {
			o := adoptiontest.Object(t, "ConfigMap v1")
			o.SetFinalizers([]string{"f"})
			o.SetDeletionTimestamp(&metav1.Time{Time: adoptiontest.TokensFrom})
			h.Put(t, o)
		}, []string{bound}},
		"local to each cluster": {func(t *testing.T, h *hub) {
			h.Put(t, adoptiontest.Object(t, strings.Replace(cart, "name: it", "name: kube-root-ca.crt", 1)))
			o := adoptiontest.Object(t, "ConfigMap v1")
			o.SetName("kube-root-ca.crt")
			h.Put(t, o)
		}, []string{bound}},
		"bound, and that binding is being deleted": {func(t *testing.T, h *hub) {
			h.reconcile(t)
			h.change(t, dependency, func(b *model.Binding) { b.SetDeletionTimestamp(&metav1.Time{Time: adoptiontest.TokensFrom}) })
			h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
			})
		}, []string{"PUT resourcebindings/shop/it-deployment"}},
		"bound by a policy": {func(t *testing.T, h *hub) {
			h.reconcile(t)
			h.change(t, dependency, func(b *model.Binding) {
				model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "other"})
				b.Spec.RequiredBy = nil
			})
		}, []string{"PUT resourcebindings/shop/it-configmap"}},
		"bound, and the conflict resolution changes": {func(t *testing.T, h *hub) {
			h.reconcile(t)
			h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
			})
		}, []string{"PUT resourcebindings/shop/it-deployment", "PUT resourcebindings/shop/it-configmap"}},
		"bound, and the policy is suspended": {func(t *testing.T, h *hub) {
			h.reconcile(t)
			h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
			})
		}, []string{"PUT resourcebindings/shop/it-deployment", "PUT resourcebindings/shop/it-configmap"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			c.change(t, h)
			if diff := cmp.Diff(c.want, h.reconcile(t)); diff != "" {
				t.Errorf("written (-want +got)\n%s", diff)
			}
			if written := h.reconcile(t); len(written) > 0 {
				t.Errorf("written once more: %v", written)
			}
		})
	}
}
