package binding

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// Who may write bindings in a namespace gets nothing else of the hub into a Work.
func TestResourceThatABindingMayNotName(t *testing.T) {
	for name, c := range map[string]struct {
		// binding is the namespace of the binding.
		binding  string
		resource workv1alpha2.ObjectReference
		// scoped holds when the template, as it is read, is cluster-scoped.
		scoped bool
		says   string
	}{
		"of its own namespace":           {"shop", workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "it"}, false, ""},
		"cluster-scoped":                 {"", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "shop"}, true, ""},
		"of another namespace":           {"shop", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "bank", Name: "it"}, false, "spec.resource.namespace must be the namespace of the binding, shop"},
		"the token of a cluster":         {"shop", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "karmada-cluster", Name: "west"}, false, "spec.resource.namespace must be the namespace of the binding, shop"},
		"without a namespace":            {"shop", workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "it"}, true, "spec.resource.namespace must be the namespace of the binding, shop"},
		"cluster-scoped, under its name": {"shop", workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Namespace: "shop", Name: "it"}, true, "the resource is cluster-scoped"},
		"of any namespace":               {"", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "bank", Name: "it"}, false, "a ClusterResourceBinding names cluster-scoped resources only"},
		"the token, from beside it":      {"karmada-cluster", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "karmada-cluster", Name: "west"}, false, "the resource belongs to the hub itself"},
		"an original":                    {"karmada-es-west", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "karmada-es-west", Name: "before-it"}, false, "the resource belongs to the hub itself"},
		"the namespace of the Works":     {"", workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "karmada-es-west"}, true, "the resource belongs to the hub itself"},
		"a Cluster":                      {"", workv1alpha2.ObjectReference{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "west"}, true, "the resource belongs to the hub itself"},
		"a policy":                       {"shop", workv1alpha2.ObjectReference{APIVersion: "policy.karmada.io/v1alpha1", Kind: "PropagationPolicy", Namespace: "shop", Name: "it"}, false, "the resource belongs to the hub itself"},
	} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBinding(client.ObjectKey{Namespace: c.binding, Name: "it"})
			b.Spec.Resource, b.Spec.Clusters = c.resource, []workv1alpha2.TargetCluster{{Name: "west"}}
			model.Claim(b, model.PolicyKey{Name: "p"})
			template := adoptiontest.Object(t, c.resource.Kind+" "+c.resource.APIVersion)
			template.SetName(c.resource.Name)
			template.SetNamespace(c.resource.Namespace)
			if c.scoped {
				template.SetNamespace("")
			}
			d := Decide(Observed{Binding: b, Template: template})
			if c.says == "" {
				if d.Refused != nil || len(d.Steps) != 1 {
					t.Errorf("%v, %d steps", d.Refused, len(d.Steps))
				}
				return
			}
			if d.Refused == nil || len(d.Steps) > 0 {
				t.Fatalf("%v, %d steps", d.Refused, len(d.Steps))
			}
			head := "spec.resource of " + b.String() + " names " + model.TemplateOfBinding(b).Object().String() + ", and nothing is written to clusters: "
			if message := d.Refused.Message; d.Refused.Code != "ResourceRefused" || !strings.HasPrefix(message, head+c.says) || !strings.Contains(message, "delete the binding") {
				t.Errorf("%s: %s", d.Refused.Code, message)
			}
		})
	}
}

// The token of a cluster is not even read for a binding elsewhere, and the refusal is reported once.
func TestRefusedBindingIsReported(t *testing.T) {
	o := observed(t)
	o.Works = nil
	o.Binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: model.SecretNamespace, Name: "west"}
	o.Template = adoptiontest.Object(t, "Secret v1\ndata: {token: c2VjcmV0}")
	o.Template.SetNamespace(model.SecretNamespace)
	o.Template.SetName("west")
	s := newStage(t, o)
	s.On = func(verb string, object client.Object) error {
		if verb == "get" && object.GetNamespace() == model.SecretNamespace {
			t.Error("the Secret is read")
		}
		return nil
	}
	for _, writes := range [][]string{{"apply status"}, nil} {
		if err := s.reconcile(t); err != nil || !slices.Equal(s.Writes, writes) {
			t.Fatalf("%v, %v", s.Writes, err)
		}
	}
	for _, kind := range []string{workv1alpha2.ConditionScheduled, workv1alpha2.ConditionFullyApplied} {
		got := meta.FindStatusCondition(s.binding(t).Status.Conditions, kind)
		if got == nil || got.Status != metav1.ConditionFalse || got.Reason != "ResourceRefused" || !strings.Contains(got.Message, "Secret karmada-cluster/west") {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

// A second binding of a resource does not take the Work from the first, as long as that exists.
func TestWorkOfAnotherBindingIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		owner string
		taken bool
	}{"that exists": {"b", false}, "that is gone": {"gone", true}} {
		t.Run(name, func(t *testing.T) {
			o := observed(t)
			o.Works["west"].Labels[model.LabelBinding] = c.owner
			s := newStage(t, o)
			second := o.Binding.Copy()
			second.SetName("second")
			second.SetUID("c")
			second.SetResourceVersion("")
			if err := s.Create(t.Context(), second.Object); err != nil {
				t.Fatal(err)
			}
			result, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(second.Object)})
			if err != nil {
				t.Fatal(err)
			}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: model.ExecutionNamespace("west"), Name: workName}}
			s.Exists(t, work)
			if taken := work.Labels[model.LabelBinding] == "c"; taken != c.taken {
				t.Fatalf("taken: %t", taken)
			}
			if c.taken {
				return
			}
			s.Exists(t, second.Object)
			got := meta.FindStatusCondition(second.Status.Conditions, workv1alpha2.ConditionFullyApplied)
			const says = "spec.resource of ResourceBinding shop/second names Deployment shop/it, whose Work for cluster west belongs to ResourceBinding shop/it-deployment: delete one of the two bindings"
			if got == nil || got.Reason != "ResourceRefused" || got.Message != says || result.RequeueAfter == 0 {
				t.Errorf("%v, again after %s", got, result.RequeueAfter)
			}
		})
	}
}
