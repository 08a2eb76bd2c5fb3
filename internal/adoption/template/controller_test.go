package template

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

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
