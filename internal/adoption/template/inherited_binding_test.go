package template

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// inherit has a binding of Karmada, of its name, for a template of the hub.
func (h *hub) inherit(t *testing.T, name string, template *unstructured.Unstructured) client.ObjectKey {
	t.Helper()
	of := model.TemplateOf(template)
	h.put(t, &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name},
		Clusters: []workv1alpha2.TargetCluster{{Name: "west"}},
	}})
	h.Writes = nil
	return client.ObjectKey{Namespace: "shop", Name: name}
}

// Of a template whose binding has another name than Fairlead would give it, the binding is that one: a second one would write the
// same objects.
func TestInheritedBinding(t *testing.T) {
	custom := "Deployment example.com/v1"
	for name, c := range map[string]struct {
		change func(*testing.T, *hub)
		want   []string
	}{
		"of the template": {func(t *testing.T, h *hub) {
			h.inherit(t, "it.odd-deployment", adoptiontest.Object(t, cart))
		}, []string{"update ResourceBinding it.odd-deployment", "create ResourceBinding it-configmap"}},
		"of a dependency": {func(t *testing.T, h *hub) {
			h.inherit(t, "it.odd-configmap", adoptiontest.Object(t, "ConfigMap v1"))
		}, []string{"create ResourceBinding it-deployment", "update ResourceBinding it.odd-configmap"}},
		"of a custom kind, under the name of the template's": {func(t *testing.T, h *hub) {
			h.inherit(t, "it-deployment", adoptiontest.Object(t, custom))
		}, []string{"create ResourceBinding it-deployment-" + model.Digest("apps", "Deployment", "it"), "create ResourceBinding it-configmap"}},
		"of a custom kind, under the name of the dependency's": {func(t *testing.T, h *hub) {
			h.inherit(t, "it-configmap", adoptiontest.Object(t, "ConfigMap example.com/v1"))
		}, []string{"create ResourceBinding it-deployment", "create ResourceBinding it-configmap-" + model.Digest("", "ConfigMap", "it")}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			c.change(t, h)
			if diff := cmp.Diff(c.want, h.reconcile(t)); diff != "" {
				t.Errorf("written (-want +got)\n%s", diff)
			}
			if again := h.reconcile(t); len(again) > 0 {
				t.Errorf("written once more: %v", again)
			}
		})
	}
}

// What a policy removes from a binding of Karmada is named, once.
func TestFieldsOfAnInheritedBinding(t *testing.T) {
	h := newHub(t)
	key := h.inherit(t, "it-deployment", adoptiontest.Object(t, cart))
	h.change(t, key, func(b *model.Binding) {
		b.Spec.Components = []workv1alpha2.Component{{Name: "a", Replicas: 1}}
		b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
	})
	h.reconcile(t)
	h.reconcile(t)
	const want = "Warning FieldsRemoved policy shop/p takes ResourceBinding shop/it-deployment, and fields that Fairlead does not support are removed from it: spec.components, spec.suspension.scheduling"
	if len(h.events.Events) != 1 {
		t.Fatalf("%d events", len(h.events.Events))
	}
	if got := <-h.events.Events; got != want {
		t.Errorf("got %s", got)
	}
}

// The binding of a custom kind that Karmada has made is released, deleted and created again under its name.
func TestInheritedBindingOfACustomKind(t *testing.T) {
	route := adoptiontest.Object(t, "VirtualService networking.istio.io/v1")
	key := model.KeyOf(route)
	start := func(t *testing.T) (*hub, func() []string) {
		h := newHub(t)
		h.put(t, route.DeepCopy())
		h.setPolicy(t, func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: key.Kind.GroupVersion().String(), Kind: key.Kind.Kind}}
		})
		h.reconciler.Kinds.watched.Store(key.Kind, true) // the API server in memory cannot list metadata of kinds without a Go type
		return h, func() []string {
			h.Writes = nil
			if _, err := h.reconciler.Reconcile(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			return h.Writes
		}
	}
	t.Run("taken", func(t *testing.T) {
		h, reconcile := start(t)
		inherited := h.inherit(t, "it-virtualservice", route)
		if got := reconcile(); !slices.Equal(got, []string{"update ResourceBinding it-virtualservice"}) {
			t.Errorf("written: %v", got)
		}
		h.remove(t, h.policy(t))
		if got := reconcile(); !slices.Equal(got, []string{"update ResourceBinding it-virtualservice"}) || model.ClaimOf(h.read(t, inherited)) != (model.PolicyKey{}) {
			t.Errorf("released: %v", got)
		}
	})
	t.Run("the template is deleted", func(t *testing.T) {
		h, reconcile := start(t)
		h.inherit(t, "it-virtualservice", route)
		h.remove(t, route.DeepCopy())
		if got := reconcile(); !slices.Equal(got, []string{"delete ResourceBinding it-virtualservice"}) {
			t.Errorf("written: %v", got)
		}
	})
	t.Run("deleted, and its Works are left", func(t *testing.T) {
		h, reconcile := start(t)
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: model.ExecutionNamespace("west"), Name: "it-5d6c7b8a9f", Annotations: map[string]string{
			"resourcebinding.karmada.io/namespace": "shop", "resourcebinding.karmada.io/name": "it-virtualservice",
		}}}
		raw, err := route.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		work.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
		work.Spec.Workload.Manifests[0].Raw = raw
		h.put(t, work)
		if got := reconcile(); !slices.Equal(got, []string{"create ResourceBinding it-virtualservice"}) {
			t.Errorf("written: %v", got)
		}
	})
	t.Run("deleted with its template, and its Works are left", func(t *testing.T) {
		h, reconcile := start(t)
		h.remove(t, route.DeepCopy())
		if got := reconcile(); len(got) > 0 || !slices.Contains(h.enqueued, client.ObjectKey{Namespace: "shop", Name: "it-virtualservice"}) {
			t.Errorf("written: %v, enqueued: %v", got, h.enqueued)
		}
	})
}
